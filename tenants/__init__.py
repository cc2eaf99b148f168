"""Answer who is calling, and for which tenant.

Begin with `tenancy/context.py`, then `membership/members.py`. All rooms are in docs/architecture.md.
"""
