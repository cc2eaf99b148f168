"""Take a whole tenant out of an installation as one file, and bring it into another one, or into the same again.

Begin with `tenant_file.py`, which says what is in a file and how it is checked; `tenant_export.py` writes one, and
`tenant_import.py` reads it. What belongs to a tenant, the rooms declare: see portal/schema/holdings.py.
"""
