"""Hand on the tickets of people who have left the desk.

May import `desk` and what is below. Begin with `handover.py`.
"""
