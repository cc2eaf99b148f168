"""Measure what one noisy tenant does to nineteen others: behind shared queues, and at the door of the portal.

`closed_loop.py` has the clients of both, `designs.py` the queues' designs as policies, `queue_trial.py` and
`flood_trial.py` carry one trial out in a process of `trials.py`, and `noise_figures.py` has the promises.
"""
