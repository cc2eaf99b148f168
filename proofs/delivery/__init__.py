"""Kill what tells and what delivers, anywhere, then ask whether every event has arrived.

Begin with `delivery_torture.py`.
"""
