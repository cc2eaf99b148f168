"""Maintain the aggregates from the stream, exactly once: contribution, fold, merge, dead letters.

Begin with `contributions.py` (what one ticket adds), then `stream_handler.py`.
"""
