"""Tell the owners of a desk what it costs, by month and feature, from measured capacity.

Begin with `statement.py`.
"""
