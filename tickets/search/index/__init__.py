"""Keep the index that a search asks. The package above lists its concepts; `segments.py` says why no reader misses
anything.
"""
