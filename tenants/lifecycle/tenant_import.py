"""Bring a tenant in from its file: under its own id or another one, into an installation that does not have it.

Nothing is written before all of the file is found whole, its audit trail included. Then the tenant's own item is
written, its content, its trail, its keys, and at last its members: nobody enters a desk that is half there. A note in
the directory says how far it is; the same command goes on from there, and what is written twice is written alike.
Aggregates and index are not in the file: the stream of the tickets makes them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from portal.dynamo import provisioning
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import BATCH_WRITE_LIMIT, Transaction
from portal.dynamo.tenant_reader import lifecycle_store
from portal.errors import ConditionFailed, Conflict, TransactionRefused
from portal.schema import registry
from portal.schema.holdings import Holding, Raw, TenantArrival
from portal.schema.registry import Table
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.lifecycle import arriving_rows, import_notes, tenant_file, tenant_lifecycle
from tenants.lifecycle.arriving_rows import KEYS, MEMBERS, TENANT, TRAIL, RowCheck, holding_of
from tenants.lifecycle.object_rows import ObjectArrival
from tenants.lifecycle.stored import ARRIVING, ArrivingItem
from tenants.lifecycle.tenant_file import Entry, FileFault, Manifest
from tenants.sign_in import accounts
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem

_ID: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_NOTE: Final = "note"  # a member of the transaction that makes the tenant
_NOTED_EVERY: Final = 1000  # lines
_AT_LAST: Final = (TRAIL, KEYS, MEMBERS)  # in this order, behind all else


@dataclass
class Arrived:
    """Count what was brought in. `left_out` are items that cannot be here, by holding."""

    tenant: TenantItem
    items: int = 0
    new_accounts: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)


@dataclass
class TenantImport:
    """One run. `slug` is "" for the one in the file; `new_id` gives the tenant another id than it had.

    `begun` is called with the name of each step and its lines, `advance` with the lines since the last call, and
    `refuse` with the id that the tenant will have here, before anything of it is written: it may raise Conflict.
    """

    path: Path
    by: Actor
    slug: str = ""
    new_id: bool = False
    placement: Placement = POOL
    begun: Callable[[str, int], object] = lambda step, lines: None
    advance: Callable[[int], object] = lambda lines: None
    refuse: Callable[[str], object] = lambda tenant_id: None

    def run(self) -> Arrived:
        """Bring the tenant in. Raises FileFault, Conflict, Invalid, OSError, Unavailable, Throttled."""
        with tenant_file.reading(self.path) as file:
            self._file, self._manifest = file, file.manifest
            self._entries = {entry.holding: entry for entry in self._manifest.entries}
            if len(self._entries) != len(self._manifest.entries):
                raise FileFault("The manifest names an entry twice.")
            fingerprint = self._check()
            self._note = self._begin()
            self._ids = {self._manifest.tenant_id: self._note.tenant_id}
            people = self._people()
            self._arrived = Arrived(self._make(), items=1)
            self._arrived.new_accounts = people
            for entry in (*self._content(), *(self._entries[name] for name in _AT_LAST)):
                self.begun(entry.holding, entry.lines)
                self._import_entry(entry)
            self._end(fingerprint)
        return self._arrived

    def _check(self) -> str:
        for name in (TENANT, *_AT_LAST):
            if name not in self._entries:
                raise FileFault(f"The file has no {name}, so it is not a whole tenant.")
        self.begun("checking", self._manifest.lines)
        rows = RowCheck(self._manifest)
        self._file.check(self.advance, look=rows.look)
        rows.end()
        if (lines := self._entries[TENANT].lines) != 1:
            raise FileFault(f"The file has {lines:,} tenants in place of one.")
        return arriving_rows.check_trail(self._file, self._entries[TRAIL])

    def _begin(self) -> ArrivingItem:
        """Return the note of this import: a new one, or that of one which was broken off."""
        slug = tenant_directory.valid_slug(self.slug or self._manifest.slug)
        digest = _digest(self._manifest)
        if (known := import_notes.under_way(slug)) is not None:
            if known.abandoned:
                raise Conflict(f"The import of {slug} is being abandoned: import_tenant --abandon {slug} ends that.")
            if known.file != digest:
                raise Conflict(
                    f"Another file is being brought in as {slug}. Finish that one first, or give it up: "
                    f"import_tenant --abandon {slug}."
                )
            import_notes.take_over(known)
            return known
        tenant_id = accounts.new_id() if self.new_id else self._manifest.tenant_id
        self._refuse_taken(slug, tenant_id)
        self.refuse(tenant_id)
        note = ArrivingItem(ARRIVING, slug, tenant_id=tenant_id, file=digest)
        import_notes.begin(note)
        return note

    def _refuse_taken(self, slug: str, tenant_id: str) -> None:
        if tenant_directory.id_of(slug) is not None:
            both = "" if self.new_id else ", and --new-id where that is the same tenant as the file's"
            raise Conflict(f"There is a tenant with the slug {slug} already. Choose another one by --as SLUG{both}.")
        if tenant_directory.get_many([tenant_id]):
            raise Conflict("The tenant of this file is here already. To make a second one of it: --new-id --as SLUG.")

    def _people(self) -> list[str]:
        """Find or make the account of each member, and note by which id they go here. Returns the new addresses."""
        made = []
        for _, _, member in self._file.items(self._entries[MEMBERS]):
            user, is_new = arriving_rows.account_of(member, by=self.by)
            self._ids[member["user_id"]["S"]] = user.id
            made += [user.email] if is_new else []
        return made

    def _make(self) -> TenantItem:
        """Write the tenant's own item, its names and its queues, unless a former attempt has."""
        ((_, _, raw),) = self._file.items(self._entries[TENANT])
        self._arrival = TenantArrival(
            raw, self._manifest.with_secrets, self._note.tenant_id == self._manifest.tenant_id
        )
        fitted = {**(self._fitted(holding_of(TENANT), self._replaced(raw)) or {}), "slug": {"S": self._note.name}}
        self._arrival = TenantArrival(fitted, self._arrival.with_secrets, self._arrival.same_id)
        if stored := tenant_directory.get_many([self._note.tenant_id]):
            if not import_notes.is_of(stored[0], self._note):
                raise Conflict("Another import has brought a desk with this id in meanwhile.")
            return stored[0]
        tenant: TenantItem = TenantItem.from_raw_data(fitted)
        tenant.arriving = self._note.import_id
        if self.placement != POOL:
            tenant.placement = str(self.placement)
            provisioning.create_placed(tenant.tenant_id, self.placement)
        try:
            tenant_lifecycle.write_new(tenant, None, [], beside=[self._check_note])
        except TransactionRefused as refused:
            if refused.reason(_NOTE):
                raise Conflict(import_notes.ENDED) from refused
            raise Conflict(f"Another desk is using the short name {tenant.slug} or this id by now.") from refused
        return tenant

    def _check_note(self, transaction: Transaction, tenant: TenantItem) -> None:
        transaction.check(self._note, import_notes.goes_on(self._note), name=_NOTE)

    def _content(self) -> list[Entry]:
        """Return the entries that are written one like the other, without those behind which an attempt has come."""
        entries = [entry for name, entry in self._entries.items() if name not in (TENANT, *_AT_LAST)]
        reached = next((i for i, entry in enumerate(entries) if entry.name == self._note.entry), 0)
        return entries[reached:]

    def _import_entry(self, entry: Entry) -> None:
        if entry.holding == TRAIL:
            arriving_rows.bring_in_trail(
                self._file,
                entry,
                replaced=self._replaced,
                is_same=self._arrival.same_id,
                look=self._refuse_if_ended,
                advance=self._advance,
            )
        elif entry.holding == MEMBERS:
            for _, _, member in self._file.items(entry):
                user, _ = arriving_rows.account_of(member, by=self.by)
                self._refuse_if_ended()
                arriving_rows.join(self._arrived.tenant, user, member)
                self._advance(1)
        elif (holding := holding_of(entry.holding)).objects:
            self._write_objects(entry, holding.objects(self._note.tenant_id))
        else:
            self._write(entry, holding)

    def _write(self, entry: Entry, holding: Holding) -> None:
        behind = int(self._note.line) if self._note.entry == entry.name else 0
        self.advance(behind)
        waiting: dict[tuple[str, str], tuple[Table, Raw]] = {}  # by table and key: a batch takes none twice
        noted = behind
        for number, table, raw in self._file.items(entry, behind=behind):
            item = self._fitted(holding, self._replaced(raw))
            if item is None:
                self._arrived.left_out[holding.name] = self._arrived.left_out.get(holding.name, 0) + 1
                continue
            declared = _tables()[table]
            key = repr([item[name] for name in (declared.hash, declared.range) if name])
            waiting[table, key] = declared, {"PutRequest": {"Item": item}}
            if len(waiting) == BATCH_WRITE_LIMIT:
                self._send([*waiting.values()])
                waiting = {}
                if number - noted >= _NOTED_EVERY:
                    noted = number
                    self._note_progress(entry, noted)
        self._send([*waiting.values()])
        self._note_progress(entry, entry.lines)

    def _write_objects(self, entry: Entry, prefix: str) -> None:
        behind = int(self._note.line) if self._note.entry == entry.name else 0
        self.advance(behind)
        arrival = ObjectArrival(self._note.tenant_id, prefix)
        for number, _, row in self._file.items(entry, behind=behind):
            self._refuse_if_ended()
            if arrival.take(row):
                self._note_progress(entry, number)
            self._advance(1)
        self._note_progress(entry, entry.lines)

    def _send(self, members: list[tuple[Table, Raw]]) -> None:
        self._refuse_if_ended()
        placement = Placement.parse(self._arrived.tenant.placement)
        lifecycle_store(self._note.tenant_id, placement).write_raw(members)
        self._advance(len(members))

    def _refuse_if_ended(self) -> None:
        import_notes.look(self._note)

    def _advance(self, lines: int) -> None:
        self._arrived.items += lines
        self.advance(lines)

    def _note_progress(self, entry: Entry, line: int) -> None:
        self._note.entry, self._note.line = entry.name, line
        try:
            PLATFORM.put(self._note, condition=import_notes.goes_on(self._note))
        except ConditionFailed as failed:
            raise Conflict(import_notes.ENDED) from failed

    def _fitted(self, holding: Holding, item: Raw) -> Raw | None:
        return holding.fit(item, self._arrival) if holding.fit else item

    def _replaced(self, item: Raw) -> Raw:
        """Put the ids of here in place of those of the file, wherever they stand."""
        changed = {old: new for old, new in self._ids.items() if old != new}
        return _with_ids(item, changed) if changed else item

    def _end(self, fingerprint: str) -> None:
        """Record the import in the tenant's trail and forget how far it was."""
        tenant, manifest = self._arrived.tenant, self._manifest
        after: dict[str, object] = {"made_at": manifest.made_at, "items": manifest.lines}
        if not self._arrival.same_id:
            after |= {"former_id": manifest.tenant_id, "former_fingerprint": fingerprint}
        transaction = Transaction()
        transaction.delete(self._note, condition=import_notes.goes_on(self._note))
        transaction.update(
            tenant, [TenantItem.arriving.remove()], condition=TenantItem.arriving == self._note.import_id
        )
        tenant_directory.list_as(transaction, tenant, tenant.status)
        entry = AuditEntry.of_tenant(tenant, AuditAction.TENANT_IMPORTED, self.by, after=after)
        recording.commit(transaction, [entry], refused=Conflict(import_notes.ENDED))


@cache
def _tables() -> Mapping[str, Table]:
    return {table.name: table for table in registry.tables()}


def _with_ids(value: Any, ids: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _with_ids(inner, ids) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_ids(inner, ids) for inner in value]
    return _ID.sub(lambda match: ids.get(match[0], match[0]), value) if isinstance(value, str) else value


def _digest(manifest: Manifest) -> str:
    return hashlib.sha256(json.dumps(asdict(manifest), sort_keys=True).encode()).hexdigest()
