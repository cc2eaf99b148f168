"""Keep the index that a search asks. Begin with `segments.py`, which says why no reader misses anything."""
