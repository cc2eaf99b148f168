"""Maintain the aggregates from the stream, exactly once.

Begin with `contributions.py` (what one ticket adds), then `stream_handler.py`.
"""
