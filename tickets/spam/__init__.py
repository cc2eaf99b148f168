"""Mark tickets as spam, look through them, and take that back; what stays marked goes after 30 days.

Begin with `spam_marking.py`.
"""
