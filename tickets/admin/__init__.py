"""Register what operators see of tickets and of the stream behind them: importing this package does it.

Begin with `ticket_admin.py`; the models that it shows are in `facades.py`.
"""

from tickets.admin import (  # noqa: F401  # importing is registering
    cost_pages,
    deletion_pages,
    job_pages,
    letter_pages,
    noise_pages,
    place_pages,
    rights_pages,
    search_pages,
    shard_pages,
    status_pages,
    ticket_admin,
)
