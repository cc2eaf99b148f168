"""Take tickets out and bring them in, and find, hand out or erase what a desk holds of one person.

Begin with `importer.py`, `exporting.py` or `person_finding.py`.
"""
