"""Manage members, roles, seats and invitations.

Begin with `members.py`.
"""
