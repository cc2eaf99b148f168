"""Know accounts: sign-in, passwords, sessions, and what slows down guessing.

May import `audit_trail`. Begin with `accounts.py`.
"""
