"""Know second factors: authenticator apps, passkeys and recovery codes; what proves a person beside the password.

Begin with `factor_store.py` (what somebody has), then `factor_checking.py` (what is taken as proof) and
`factor_changes.py` (how it is added and removed).
"""
