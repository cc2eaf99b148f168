"""Format dates wherever Django writes them, in the admin too, as the portal's own pages do.

Begin with `en/formats.py`.
"""
