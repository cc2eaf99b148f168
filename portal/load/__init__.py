"""Measure what each tenant asks for, minute by minute, and limit it.

Begin with `tenant_limiter.py`, which lets a tenant through at its rate, and `measurement.py`, which each process keeps
in its memory; `reporting.py` writes that down, for the pages Usage (`usage.py`) and Noise (`noise_report.py`).
"""
