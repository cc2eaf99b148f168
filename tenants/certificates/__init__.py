"""Certify that a tenant was deleted: signed documents, each with the hash of the one before, verifiable without us.

Begin with `signed_certificate.py`. Certificates are made by `tickets/purging`.
"""
