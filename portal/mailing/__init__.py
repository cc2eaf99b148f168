"""Make mail, and hand it to who carries it: SMTP, Amazon SES, or files in development.

Begin with `outgoing.py`, which says what a mail's way needs to know of it.
"""
