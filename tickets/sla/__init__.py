"""Targets for answers and solutions, in business time: what each ticket has to meet until when, and what was missed.

Begin with `policy.py`, then `clocks.py`: pure functions of a ticket's history and the versions of the desk's policy.
"""
