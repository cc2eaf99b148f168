"""Tell open pages who else looks at a ticket or writes on it, and that something has changed.

Begin with `page_tokens.py`: an open page asks by a signed token, so that nobody has to be identified.
"""
