"""Hold each tenant to its limits, in process: how much it may ask for, and how much of it may be at work at a time.

Begin with `tenant_limiter.py` (rates) and `concurrency.py` (what is at work). By `rate_sharing.py` processes share
a tenant's rate.
"""
