"""Call the API with keys that are wrong in every way, and with good ones for what is another tenant's.

Begin with `call_tricks.py`, which says what is tried and what has to come back.
"""
