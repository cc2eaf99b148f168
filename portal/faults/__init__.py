"""Unexpected errors of all processes, grouped by fingerprint for operators. Begin with `fault_board.py`.

Each process counts its own in `portal.logs`.
"""
