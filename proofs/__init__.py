"""Prove what the product promises, on a running engine. A development app: the product runs without it.

Each room attacks one promise, and has a command of its own. Begin with `isolation/proof.py`.
"""
