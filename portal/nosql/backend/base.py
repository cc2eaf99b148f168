"""Let Django believe in a default database, and refuse every statement sent to it.

`transaction.atomic()` is used inside Django's own views and runs its block; `on_commit` hooks run when the
outermost block ends well. Any SQL raises: a query here is a bug, because DynamoDB is the only database.
"""

from __future__ import annotations

from typing import Any, NoReturn

from django.core.exceptions import ImproperlyConfigured
from django.db.backends.dummy import base as dummy


def refuse_sql(*args: Any, **kwargs: Any) -> NoReturn:
    raise ImproperlyConfigured("Pooldesk has no relational database; something tried to run SQL.")


class DatabaseOperations(dummy.DatabaseOperations):
    quote_name = refuse_sql


class DatabaseWrapper(dummy.DatabaseWrapper):
    vendor = "none"
    display_name = "no database"
    ops_class = DatabaseOperations

    def ensure_connection(self) -> None:
        """Connect to nothing."""

    def get_autocommit(self) -> bool:
        return not self.in_atomic_block

    def set_autocommit(self, autocommit: bool, force_begin_transaction_with_broken_autocommit: bool = False) -> None:
        """Switch nothing around the outermost block."""

    def commit(self) -> None:
        self.run_and_clear_commit_hooks()

    def rollback(self) -> None:
        self.run_on_commit = []

    # Savepoints are what lets an inner block fail without the outer one: only the inner one's hooks are dropped.
    def _savepoint_allowed(self) -> bool:
        return self.in_atomic_block

    def _savepoint(self, sid: str) -> None:
        """Mark nothing."""

    _savepoint_commit = _savepoint_rollback = _savepoint

    _cursor = refuse_sql
    cursor = refuse_sql
    chunked_cursor = refuse_sql


class NothingMigrates:
    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return False
