"""Certify that a tenant was deleted: signed documents, each with the hash of the one before, verifiable without us.

Begin with `certificate_file.py`. May import `audit_trail` and the kernel; what makes certificates is `tickets/purging`.
"""
