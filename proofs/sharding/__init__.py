"""Try to make lists wrong while a tenant is resharded: `manage.py torture_reshard`.

Begin with `reshard_torture.py`, then `reshard_child.py`, which is what its processes do.
"""
