"""Lists of tickets as people want them: under a name, counted, in the columns that they chose.

Begin with `saved_views.py`; `view_counts.py` counts tickets, and `presenters.py` keeps how a browser shows lists.
"""
