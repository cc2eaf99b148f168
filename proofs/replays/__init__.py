"""Try to have a POST of the API done twice, or not at all: `manage.py torture_idempotency`.

Begin with `replay_torture.py`, then `replay_server.py`, which is what its processes do.
"""
