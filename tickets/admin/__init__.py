"""The operators' view of tickets and of the stream behind them. Importing it registers all of it."""

from tickets.admin import dead_letter_admin, status_pages, ticket_admin

__all__ = ["dead_letter_admin", "status_pages", "ticket_admin"]
