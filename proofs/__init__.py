"""Prove what the product promises, on a running engine. A development app: the product runs without it.

`harness.py` kills processes and starts them again for the scenarios of each subsystem, `isolation/proof.py` attacks the
layers between tenants, and `noise/` floods shared queues. Each has a command.
"""
