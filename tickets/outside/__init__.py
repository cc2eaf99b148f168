"""Serve pages to people outside a desk, without an account or a session there: looks, languages and the common frame.

Begin with `guest_access.py`, which finds the desk of an address, and `pages.py`, which renders a page.
"""
