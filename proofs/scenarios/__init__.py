"""One torture for each subsystem: processes work, others are killed, and in the end nothing may be lost or doubled.

Each module declares a `Torture` of harness.py with its options, the work of its processes, and the figures
that must be empty. Its command is `manage.py torture_...`.
"""
