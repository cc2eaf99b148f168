"""The operators' admin: what of the platform they see and change. Importing it registers all of it."""

from tenants.admin import account_admin, membership_admin, session_admin, tenant_admin, trail_admin

__all__ = ["account_admin", "membership_admin", "session_admin", "tenant_admin", "trail_admin"]
