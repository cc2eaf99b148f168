"""Refuse what a forged file would bring in beside its tenant: rows of others, and what no desk can work with.

Hashes in a file show damage and no forger. The audit trail, the members and the tenant's own item are written by the
platform's role, which no policy binds to one tenant; so each row is looked at here before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from portal.schema import holdings, keys
from portal.schema.holdings import Holding, Raw
from portal.schema.tables import Table
from tenants.audit_trail.tables import CHAINS
from tenants.identity import keys as identity_keys
from tenants.tenancy import tenant_directory
from tenants.tenancy.roles import Role
from tenants.transfer.tenant_file import Entry, FileFault, Manifest

TENANT, TRAIL, KEYS, MEMBERS = "tenant", "audit trail", "API keys", "members"
_STATUSES: Final = (tenant_directory.ACTIVE, tenant_directory.SUSPENDED)


class RowCheck:
    """Looks at each row of one file, as `TenantFile.check` reads it."""

    def __init__(self, manifest: Manifest) -> None:
        self._tenant_id = manifest.tenant_id
        self._tables: Mapping[str, Mapping[str, Table]] = {
            entry.holding: {table.name: table for table in _tables_of(holding_of(entry.holding))}
            for entry in manifest.entries
        }
        if not _is_tenant_id(self._tenant_id):
            raise FileFault("The manifest names no tenant: its id cannot be one.")

    def look(self, entry: Entry, number: int, table: str, item: Raw) -> None:
        """Raise FileFault for a row that cannot be this tenant's."""
        try:
            why = self._fault(entry.holding, table, item)
        except (KeyError, TypeError, ValueError, AttributeError):
            why = "has not the form of its kind"
        if why:
            raise FileFault(f"Line {number:,} of {entry.name} {why}.")

    def _fault(self, holding: str, name: str, item: Raw) -> str:
        table = self._tables[holding].get(name)
        if table is None:
            return "is of a table that its entry has nothing of"
        hashes = {table.hash, *(index.hash for index in table.indexes if index.leading_keys)}
        named = [item[table.hash]["S"], *(item[attribute]["S"] for attribute in hashes if attribute in item)]
        if not all(keys.belongs_to(self._tenant_id, key) for key in named):
            return "is another tenant's"
        if holding == TENANT:
            return _fault_of_tenant(item)
        return _fault_of_member(item, self._tenant_id) if holding == MEMBERS else ""


def holding_of(name: str) -> Holding:
    """Return the holding of this name. Raises FileFault where this version of the portal has none."""
    found = next((holding for holding in holdings.holdings() if holding.name == name), None)
    if found is None or found.left_out:
        raise FileFault(f"The file has {name}, of which this version of the portal knows nothing.")
    return found


def _is_tenant_id(value: Any) -> bool:
    # The id of the platform's own rows would make a desk whose owners read the platform's audit trail.
    return isinstance(value, str) and keys.TENANT_ID.match(value) is not None and value != keys.PLATFORM


def _tables_of(holding: Holding) -> tuple[Table, ...]:
    return (*holding.tables, CHAINS) if holding.name == TRAIL else holding.tables  # its ends stand with its rows


def _fault_of_tenant(item: Raw) -> str:
    status: Any = item.get("status_before") or item["status"]
    shards: Any = item.get("write_shards") or item["shards"]
    is_whole = all(item[name]["S"] for name in ("name", "slug", "created_at"))
    return "" if is_whole and status["S"] in _STATUSES and int(shards["N"]) > 0 else "is no tenant that can be here"


def _fault_of_member(item: Raw, tenant_id: str) -> str:
    """Say what is wrong with a member. A role that nobody knows would keep the person out of all their desks."""
    user_id = item["user_id"]["S"]
    if keys.USER_ID.match(user_id) is None or user_id == tenant_id:
        return "names nobody"
    identity_keys.email(item["email"]["S"])
    is_whole = isinstance(item["name"]["S"], str) and item["created_at"]["S"]
    return "" if is_whole and item["role"]["S"] in list(Role) else "has a role that nobody has"
