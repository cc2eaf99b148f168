"""Lists of tickets as people want them: under a name, in the columns that they chose.

Begin with `list_display.py`: how a browser shows lists.
"""
