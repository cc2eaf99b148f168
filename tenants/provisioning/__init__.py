"""Create, change, suspend and resume tenants; change a desk's name and defaults.

May import `membership` and what is below. Begin with `tenant_lifecycle.py`.
"""
