"""Follow a table's stream: its shards, which process reads them, how far each is read, and the watermark.

It knows no feature: the poller is given its handler. Begin with `poller.py`.
"""
