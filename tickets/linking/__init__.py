"""Links between tickets, and comments that become tickets of their own.

Begin with `linking.py`, which makes and removes a link on both sides.
"""
