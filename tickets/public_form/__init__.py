"""Take requests by a form that each desk can open to the public: its settings, limits against floods, and the page.

Begin with `receiving.py`, which makes a ticket of a form, and `challenges.py`, the proof of work.
"""
