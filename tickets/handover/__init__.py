"""Hand on the tickets of people who have left the desk.

Begin with `handover.py`.
"""
