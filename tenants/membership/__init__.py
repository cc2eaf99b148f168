"""Manage members, roles, seats and invitations.

May import `tenancy` and what is below. Begin with `members.py`.
"""
