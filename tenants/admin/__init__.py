"""The operators' admin: what of the platform they see and change. Importing it registers all of it."""

from tenants.admin import accounts, memberships, sessions, tenants, trail

__all__ = ["accounts", "memberships", "sessions", "tenants", "trail"]
