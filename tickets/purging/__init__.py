"""Purge a tenant: delete all that is stored for it, look again, and certify it.

Begin with `tenant_purge.py` (the steps), then `purge_requests.py` (who may order one).
"""
