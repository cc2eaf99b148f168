"""Keep tenants apart: the policies of the roles, the guard in front of each request, credentials per tenant.

Begin with `policies.py` (what a role may do), then `guard.py` (how a request is held against it).
"""
