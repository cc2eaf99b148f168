"""Let a tenant's own systems in: keys that its admins make, and who calls with one.

Begin with `key_text.py` (what a key looks like), then `key_authentication.py` (what a request with one may do) and
`key_changes.py` (what admins do with keys).
"""
