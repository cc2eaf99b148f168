"""Start and stop local engines for development and tests; production has none of this.

Begin with `engine_process.py`.
"""
