"""Attack the separation of tenants, and say whether it holds.

Begin with `proof.py`; `attempts/` asks the database, `walk/` asks the portal, `oracle.py` judges both.
"""
