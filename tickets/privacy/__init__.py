"""Find what a desk knows of one person, hand it out, and forget it.

Begin with `personal_places.py`, which walks through all tickets; `person_erasing.py` replaces what it finds.
docs/privacy.md says what stays, and on what ground.
"""
