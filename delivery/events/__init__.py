"""Declare what can be told to those outside: types of events, their versions, and the fields of their payloads.

Begin with `event_types.py`. docs/events.md is made from the declarations.
"""
