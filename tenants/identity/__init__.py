"""Know accounts: sign-in, passwords, sessions, and what slows down guessing.

Begin with `accounts.py`.
"""
