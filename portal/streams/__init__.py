"""Follow a table's stream: its shards, who holds the lease of which one, how far each is read, and the watermark.

May import the kernel below it, and knows no feature: the poller is given its handler. Begin with `poller.py`.
"""
