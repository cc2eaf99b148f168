"""Fields of their own that desks define for their tickets, and kinds of tickets with their own form.

Begin with `definitions.py`, which reads what a desk has defined, and `defining.py`, which changes it. The values are
fields of tickets: tickets/ticket/custom_values.py.
"""
