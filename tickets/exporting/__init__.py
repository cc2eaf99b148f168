"""Let a desk take its tickets along: whole, as lines of JSON, and any list of them as a table.

Begin with `ticket_lines.py`.
"""
