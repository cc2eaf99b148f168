"""Plan what Django asks of a model into the access patterns that the model declares, or refuse it.

`patterns.py` declares, `planning.py` chooses and reads, `facade.py` is the face that Django sees.
"""
