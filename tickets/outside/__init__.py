"""Serve pages to people outside a desk, without an account or a session there: looks, languages and the common frame.

Begin with `pages.py`, which finds the desk of an address and renders a page.
"""
