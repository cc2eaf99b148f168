"""Kill, repeat and reorder what maintains the aggregates, then recount.

Begin with `experiment.py`.
"""
