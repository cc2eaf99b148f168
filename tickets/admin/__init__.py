"""The operators' view of tickets and of the stream behind them. Importing it registers all of it."""

from tickets.admin import letters, status, tickets

__all__ = ["letters", "status", "tickets"]
