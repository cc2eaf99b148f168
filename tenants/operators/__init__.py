"""Give the platform's operators their admin site, and the models through which it shows tenants and people.

Begin with `operator_site.py` (who may come in), then `facades.py` (how tenants are read and changed).
"""
