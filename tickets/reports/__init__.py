"""Reports of months: how much came in and was solved, how fast, by group, assignee, channel and tag, and at what hours.

Begin with `report.py`, which reads them; `mailing.py` mails the numbers of a week and the monthly letter to those who
want them.
"""
