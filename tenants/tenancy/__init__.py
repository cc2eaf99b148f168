"""Know tenants and who belongs where; pin each request to one tenant.

Begin with `context.py` (who is calling, for which tenant, in one read), then `pinned_tenant.py` and
`access_middleware.py` (where it is checked again on each request).
"""
