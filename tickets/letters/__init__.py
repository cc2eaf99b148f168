"""File the letters that come in by mail: a new ticket, a comment, or a line in the ledger that says why not.

Begin with `arrival.py`: a letter is handed to the desks that its envelope names; `filing.py` then files it in each.
"""
