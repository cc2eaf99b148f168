"""Import a public issue archive as tickets: idempotent, interruptible, in bounded memory.

May import `desk` and below. Begin with `importer.py`.
"""
