"""The life of a tenant: creation, settings, closing, export, import, and certificates of deletion.

Begin with `tenant_lifecycle.py`, then `desk_closing.py` and `tenant_import.py`. Deleting what a tenant has is in
tickets/purging, moving it in tickets/moving.
"""
