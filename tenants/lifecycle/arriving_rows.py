"""Check each row of an arriving tenant, and bring in its members and its audit trail.

Hashes in a file show damage and no forger. The audit trail, the members and the tenant's own item are written by the
platform's role, which no policy binds to one tenant; so each row is checked here before anything is written. Each
package declares the form of its rows with its holding.

A person is known by the address. Somebody without an account gets one, with the id that they had where that is free,
and without a password: the form for a forgotten one leads in.

Under its own id a trail is written as it was, row by row. Under another id no row can stay as it is, because each
names its tenant in its keys and its hash covers them. So the chain is verified first, and then made anew over the same
rows in the same order. The row that ends the import names the former id and the fingerprint of the former chain, which
can be compared with a kept one. A chain under a foreign id could be shown by no page and verified by no command.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, Final

from portal import plain_text
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from portal.errors import Conflict, TransactionRefused
from portal.schema import holdings, keys, row_forms
from portal.schema.holdings import FilePlace, Holding, Raw, RowsTogether
from portal.schema.registry import Table
from portal.schema.row_forms import RowForm
from tenants.audit_trail import chain
from tenants.audit_trail.recording import Actor
from tenants.audit_trail.stored import AuditItem, ChainItem
from tenants.lifecycle import object_rows
from tenants.lifecycle.tenant_file import Entry, FileFault, Manifest, TenantFile
from tenants.membership.stored import MemberItem
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy.stored import MembershipItem, TenantItem

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
        self._objects = {name for name, holding in known.items() if holding.exported}
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
        if holding in self._objects:
            return object_rows.fault(name, item)
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


def account_of(member: Raw, *, by: Actor) -> tuple[User, bool]:
    """Return the account of a member as exported, and whether it was made now. Raises Invalid for no address."""
    email, name = member["email"]["S"], plain_text.unlinked(member["name"]["S"])
    if (known := accounts.find_by_email(email)) is not None:
        return known, False
    try:
        return accounts.create(email=email, name=name, password=None, user_id=member["user_id"]["S"], by=by), True
    except Conflict:  # the id is somebody else's here
        return accounts.create(email=email, name=name, password=None, by=by), True


def join(tenant: TenantItem, user: User, member: Raw) -> None:
    """Write both sides of a membership, whatever is there of a former attempt."""
    role, since = member["role"]["S"], member["created_at"]["S"]
    transaction = Transaction()
    transaction.put(
        MembershipItem(
            user.id, tenant.tenant_id, role=role, tenant_name=tenant.name, tenant_slug=tenant.slug, created_at=since
        )
    )
    mirror = MemberItem.from_raw_data(member)
    mirror.tenant_id, mirror.user_id, mirror.name, mirror.email = tenant.tenant_id, user.id, user.name, user.email
    transaction.put(mirror)
    PLATFORM.transact(transaction)


_AT_ONCE: Final = 20  # rows of one transaction


def check_trail(file: TenantFile, entry: Entry) -> str:
    """Verify the chain in the file and return its fingerprint. Raises FileFault."""
    ends: chain.Ends = {}
    rows: list[chain.Link] = []
    for _, table, item in file.items(entry):
        if table == ChainItem.table.name:
            ends[item["partition"]["S"]] = (int(item["sequence"]["N"]), item["hash"]["S"])
        else:
            rows.append(chain.link_of(item))
    if findings := chain.faults(rows, ends):
        first = findings[0]
        raise FileFault(
            f"The audit trail in {entry.name} does not hold: row {first.sequence} of partition {first.partition} is "
            f"{first.kind}, and {len(findings) - 1} more."
        )
    return chain.fingerprint(ends)


def bring_in_trail(
    file: TenantFile,
    entry: Entry,
    *,
    replaced: Callable[[Raw], Raw],
    is_same: bool,
    look: Callable[[], object],
    advance: Callable[[int], object],
) -> None:
    """Write the rows and then the ends. `replaced` puts the ids of here into an item; a trail that `is_same` is left as
    it is. Rows that are there already, of a former attempt, are compared. Raises FileFault where one differs.

    `look` is called before each write, and may raise Conflict.
    """
    ends: chain.Ends = {}
    rows: list[AuditItem] = []
    with tempfile.TemporaryFile() as place:
        for raw in _in_order(file, entry, place):
            item = AuditItem.from_raw_data(raw if is_same else replaced(raw))
            last, previous = ends.get(item.partition, (0, ""))
            if not is_same:
                item.previous = previous
                item.hash = chain.hash_of(item.serialize(null_check=False))
            ends[item.partition] = (last + 1, item.hash)
            rows.append(item)
            if len(rows) == _AT_ONCE:
                look()
                _write(entry, rows)
                advance(len(rows))
                rows = []
        look()
        _write(entry, rows)
        advance(len(rows))
    tenant_id = item.tenant_id if ends else ""
    moved = Transaction()
    for partition, (sequence, hashed) in ends.items():
        moved.put(ChainItem(tenant_id, partition, sequence=sequence, hash=hashed))
    if len(moved):
        look()
        PLATFORM.transact(moved)
        advance(len(moved))


def _in_order(file: TenantFile, entry: Entry, place: IO[bytes]) -> Iterator[Raw]:
    """Yield the rows of each partition in the order of its chain. They lie in a temporary file meanwhile: memory holds
    where each begins."""
    found: list[tuple[str, int, int]] = []
    for _, table, item in file.items(entry):
        if table != ChainItem.table.name:
            found.append((item["partition"]["S"], int(item["sequence"]["N"]), place.tell()))
            place.write(json.dumps(item).encode() + b"\n")
    for _, _, begins in sorted(found):
        place.seek(begins)
        yield json.loads(place.readline())


def _write(entry: Entry, rows: list[AuditItem]) -> None:
    """Write rows that are not there yet, all or none; one by one where some are."""
    if not rows:
        return
    transaction = Transaction()
    for row in rows:
        name = row.timestamp_event_id
        transaction.put(row, name=name, condition=AuditItem.timestamp_event_id.does_not_exist())
    try:
        PLATFORM.transact(transaction)
    except TransactionRefused as refused:
        if len(rows) > 1:
            for row in rows:
                _write(entry, [row])
            return
        reason = refused.reason(rows[0].timestamp_event_id)
        if reason is None or reason.item is None:
            raise
        if reason.item["hash"]["S"] != rows[0].hash:
            raise FileFault(f"Another row of the audit trail is there in place of one of {entry.name}.") from refused
