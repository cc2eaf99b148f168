"""The experiment of the noisy neighbour: one tenant's noise against nineteen others, in five designs, on real queues.

Begin with `workload.py` (what is measured, declared before any run), then `designs.py`, `trial.py` and `promises.py`.
"""
