"""Prove what the search promises: how much an index may weigh.

Begin with `scale_trial.py`, which writes a very large one into `weighing_store.py`.
"""
