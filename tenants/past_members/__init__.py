"""Tell who was a member at a time, and with which role, from the audit trail; and take members in again.

Begin with `past_roster.py`.
"""
