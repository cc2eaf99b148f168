"""Refuse what a forged file would bring in: rows of others, and rows that no page and no command could work with.

Hashes in a file show damage and no forger. The audit trail, the members and the tenant's own item are written by the
platform's role, which no policy binds to one tenant; so each row is looked at here before anything is written. What
rows of a kind are, its room declares with its holding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from portal.schema import holdings, keys, row_forms
from portal.schema.holdings import FilePlace, Holding, Raw, RowsTogether
from portal.schema.row_forms import RowForm
from portal.schema.tables import Table
from tenants.transfer.tenant_file import Entry, FileFault, Manifest

TENANT, TRAIL, KEYS, MEMBERS = "tenant", "audit trail", "API keys", "members"
_NO_FORM: Final = "has not the form of its kind"


class RowCheck:
    """Looks at each row of one file, as `TenantFile.check` reads it, and at last at all of them together."""

    def __init__(self, manifest: Manifest) -> None:
        self._tenant_id = manifest.tenant_id
        known = {entry.holding: holding_of(entry.holding) for entry in manifest.entries}
        self._forms: Mapping[str, tuple[RowForm, ...]] = {
            name: holding.forms() if holding.forms else () for name, holding in known.items()
        }
        self._secret = {name: () if manifest.with_secrets else holding.secret for name, holding in known.items()}
        made: list[RowsTogether] = [holding.together() for holding in holdings.holdings() if holding.together]
        self._together = {name: [one for one in made if name in one.of] for name in known}
        self._all_together = made
        if not _is_tenant_id(self._tenant_id):
            raise FileFault("The manifest names no tenant: its id cannot be one.")

    def look(self, entry: Entry, number: int, table: str, item: Raw) -> None:
        """Raise FileFault for a row that cannot be this tenant's, or has not the form of its kind."""
        try:
            why = self._fault(entry.holding, table, item)
        except (KeyError, TypeError, ValueError, AttributeError):
            why = _NO_FORM
        place = FilePlace(number, entry.name)
        if why:
            raise _fault_at(place, why)
        for together in self._together[entry.holding]:
            if why := together.look(entry.holding, item, place):
                raise _fault_at(place, why)

    def end(self) -> None:
        """Raise FileFault for a row that is wrong beside the others. Call it once all rows were looked at."""
        for together in self._all_together:
            if found := together.fault():
                raise _fault_at(*found)

    def _fault(self, holding: str, name: str, item: Raw) -> str:
        forms = self._forms[holding]
        table = next((form.model.table for form in forms if form.model.table.name == name), None)
        if table is None:
            return "is of a table that its entry has nothing of"
        if not all(keys.belongs_to(self._tenant_id, key) for key in _leading_keys(table, item)):
            return "is another tenant's"
        return row_forms.fault(forms, table, self._tenant_id, item, secret=self._secret[holding])


def holding_of(name: str) -> Holding:
    """Return the holding of this name. Raises FileFault where this version of the portal has none."""
    found = next((holding for holding in holdings.holdings() if holding.name == name), None)
    if found is None or found.left_out:
        raise FileFault(f"The file has {name}, of which this version of the portal knows nothing.")
    return found


def _fault_at(place: FilePlace, why: str) -> FileFault:
    return FileFault(f"Line {place.line:,} of {place.entry} {why}.")


def _is_tenant_id(value: Any) -> bool:
    # The id of the platform's own rows would make a desk whose owners read the platform's audit trail.
    return isinstance(value, str) and keys.TENANT_ID.match(value) is not None and value != keys.PLATFORM


def _leading_keys(table: Table, item: Raw) -> list[str]:
    hashes = {table.hash, *(index.hash for index in table.indexes if index.leading_keys)}
    return [item[table.hash]["S"], *(item[attribute]["S"] for attribute in hashes if attribute in item)]
