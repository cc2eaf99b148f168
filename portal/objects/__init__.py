"""Store objects in Amazon S3, or in what stands in for it: letters as they came, which are too large for items.

Begin with `object_store.py`.
"""
