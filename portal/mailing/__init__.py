"""Make mail, hand it to SMTP, Amazon SES or files in development, and read the letters that arrive.

Begin with `outgoing.py` for mail that leaves, and with `letters.py` for letters that arrive.
"""
