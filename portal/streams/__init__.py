"""Follow a table's stream: its shards, who holds the lease of which one, how far each is read, and the watermark.

It knows no feature: the poller is given its handler. Begin with `poller.py`.
"""
