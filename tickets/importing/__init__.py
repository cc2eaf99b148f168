"""Import a public issue archive as tickets: idempotent, interruptible, in bounded memory.

Begin with `importer.py`.
"""
