"""Answer under /api/v1/: a module for each resource, which calls the rules that the pages call.

Begin with `version.py`, which lists them.
"""
