"""Show an auditor what proves how a desk is kept: evidence with its verification, a review of who may do what, exports.

Begin with `audit_export.py`. tenants/membership/auditors.py gives the access, and tenants/tenancy/access_middleware.py
keeps auditors from all other pages of a desk.
"""
