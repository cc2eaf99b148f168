"""Files of tickets: stored as objects, listed in the description or comment that they belong to.

Begin with `attachments.py`. A browser sends a file to the bucket itself, by a form that the portal signs.
"""
