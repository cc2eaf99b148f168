"""Know tenants and who belongs where; pin each request to one tenant.

Begin with `context.py` (who is calling, for which tenant, in one read), then `tenant_middleware.py` and
`request.py` (where a request's ids are read), and `access_middleware.py` (where access is checked).
"""
