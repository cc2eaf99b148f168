"""Keep what is to be told until everybody who wants to know it has answered.

A row is written in the transaction of the change that it tells of (`telling.py`), and stays in the sparse index of
pending ones until each of its destinations has answered or is given up (`progress.py`). Begin with `items.py`.
"""
