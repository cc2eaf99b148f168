"""Let owners attack their own desk, in the name of a tenant that does not exist, and show what refused each attempt.

Begin with `attempts.py` (what is tried), then `attack.py` (how it is sent and judged), `run_job.py` (a run as a job)
and `run_requests.py` (what owners ask for). `platform_proofs.py` keeps the results of the operators' own proofs.
"""
