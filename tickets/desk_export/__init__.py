"""Export a whole desk for its owners, as a job: asked for on a page, carried out by the lifecycle role, fetched later.

Begin with `export_job.py`; `export_requests.py` has what owners ask for.
"""
