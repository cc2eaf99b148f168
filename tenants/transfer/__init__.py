"""Take a whole tenant out of an installation as one file, and bring it into another one, or into the same again.

Begin with `tenant_file.py`, which says what is in a file and how it is checked; `taking_out.py` writes one, and
`bringing_in.py` reads it. What belongs to a tenant, the rooms declare: see portal/schema/holdings.py.
"""
