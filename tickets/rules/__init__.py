"""Rules of a desk: when something happens to a ticket, if it is in a list, then change it, answer, or tell others.

Begin with `definition.py`, which says without reading anything what a rule does; `engine.py` carries it out for each
event, `rule_changes.py` keeps rules and their versions, `runs.py` shows and undoes what they did.
"""
