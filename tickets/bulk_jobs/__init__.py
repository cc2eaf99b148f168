"""Change fields of all tickets that a list shows, or of many that are named, as a background job that can be undone.

Begin with `bulk_requests.py` (what is asked for), then `bulk_job.py` (how it is carried out).
"""
