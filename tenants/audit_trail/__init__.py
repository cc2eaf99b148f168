"""Record who did what, chain the rows so that a change is detected, and show them.

May import the kernel only. Begin with `recording.py`; `chain.py` verifies, `browsing.py` reads for the page.
"""
