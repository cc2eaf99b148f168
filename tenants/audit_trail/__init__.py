"""Record who did what, chain the rows so that a change is detected, and show them.

Begin with `recording.py`; `chain.py` verifies, `browsing.py` reads for the page.
"""
