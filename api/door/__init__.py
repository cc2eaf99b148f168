"""Let a request of the API in, or say in one form why not: keys, limits, scopes, JSON, errors, tags, repetitions.

Begin with `door_middleware.py`, which has the way of a request.
"""
