"""Register what operators see of tenants and people, and change: importing this package does it.

Begin with `tenant_admin.py`; the models that it shows are in `tenants/operators`.
"""

from tenants.admin import account_admin, fault_pages, membership_admin, pattern_pages, tenant_admin, trail_admin

__all__ = ["account_admin", "fault_pages", "membership_admin", "pattern_pages", "tenant_admin", "trail_admin"]
