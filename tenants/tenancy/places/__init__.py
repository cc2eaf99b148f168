"""Know where a tenant's content lies, also while it moves. Begin with `tenant_moves.py`. Part of `tenancy`."""
