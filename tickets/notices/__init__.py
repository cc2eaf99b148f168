"""Tell members by mail what concerns them: a ticket that is assigned to them, an entry on one that they hear of, a
mention. Begin with `telling.py`, which decides whom to tell, and `digest.py`, which sends it.
"""
