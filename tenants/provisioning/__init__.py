"""Create, change, suspend and resume tenants; change a desk's name and defaults.

Begin with `tenant_lifecycle.py`.
"""
