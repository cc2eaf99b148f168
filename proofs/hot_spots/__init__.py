"""Hot spots measured: how evenly tickets are spread, what is throttled, and what a page of many partitions costs.

Begin with `heat_promises.py` (what is promised), then `suffix_skew.py`, `throttle_trial.py` (by a simulated clock, on
`partition_buckets.py`) and `page_prices.py` (on the running engine).
"""
