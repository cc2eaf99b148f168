"""Sign people in: accounts, passwords, second factors, sessions, and limits on guessing.

Begin with `accounts.py`, then `entering_views.py` (the pages of signing in) and `factors.py` (second factors).
"""
