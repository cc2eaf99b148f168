"""Answer who is calling, and for which tenant.

Begin with `tenancy/context.py`, then `membership/members.py`. All packages are in docs/architecture.md.
"""
