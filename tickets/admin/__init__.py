"""Register what operators see of tickets and of the stream behind them: importing this package does it."""

from tickets.admin import (
    dead_letter_admin,
    deletion_pages,
    job_notices,
    noise_pages,
    place_pages,
    search_pages,
    shard_pages,
    status_pages,
    ticket_admin,
)

__all__ = [
    "dead_letter_admin",
    "deletion_pages",
    "job_notices",
    "noise_pages",
    "place_pages",
    "search_pages",
    "shard_pages",
    "status_pages",
    "ticket_admin",
]
