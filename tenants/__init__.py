"""Answer who is calling, and for which tenant.

From the bottom: `audit_trail` (what was done), `identity` (accounts and sign-in), `tenancy` (tenants, memberships and
the context of a request), `membership` (members, seats, invitations), `provisioning` (the life of a tenant and its
settings), `operators` and `admin` (the platform's side). Begin with `tenancy/context.py`.
"""
