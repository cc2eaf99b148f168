"""Route no migration anywhere, so that `makemigrations --check` finds nothing to do."""

from __future__ import annotations

from typing import Any


class NothingMigrates:
    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return False
