"""Name the tables that one tenant has to itself: `{prefix}.{tenant id}.{Feature}.{SubTable}`.

The id is of fixed width and stands between dots, so that a policy matches the tables of one tenant by its tag, and
those of all of them by 32 `?`, and neither matches a table that is shared.
"""

from __future__ import annotations

import re
from typing import Final

from portal.schema import keys, registry
from portal.schema.tables import Table

ANY_TENANT: Final = "?" * 32  # in a policy
_NAME: Final = re.compile(r"(?P<prefix>.+)\.(?P<tenant>[0-9a-f]{32})\.(?P<table>[A-Za-z]+\.[A-Za-z]+)\Z", re.DOTALL)


def placed_tables() -> tuple[Table, ...]:
    """Return the tables that a tenant can have to itself, by name."""
    return tuple(table for table in registry.tables() if table.placed)


def physical(prefix: str, tenant_id: str, table: Table) -> str:
    """Return what a tenant's own table is called where names begin with this prefix. Raises ValueError for no id."""
    return f"{prefix}.{keys.tenant(tenant_id)}.{table.name}"


def owner(name: str) -> tuple[str, Table] | None:
    """Return whose own table has this name, and which one it is; None for any other name."""
    match = _NAME.match(name)
    table = next((t for t in placed_tables() if t.name == match["table"]), None) if match else None
    return (match["tenant"], table) if match and table else None
