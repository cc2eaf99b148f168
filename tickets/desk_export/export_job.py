"""Make the file of a desk that an owner asked for: written to a temporary file, then stored in parts.

A run that was killed, or met a move of the desk, begins anew with a file of its own, so that two who make one for a
moment never mix their parts. A file can be fetched once its last part is stored; what is left of others expires.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from django.utils.translation import gettext, gettext_noop

from portal import clock
from portal.dynamo import provisioning
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.store import Store, Transaction
from portal.dynamo.tenant_reader import lifecycle_store
from portal.errors import Conflict
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from portal.schema import holdings
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.lifecycle import tenant_export
from tenants.membership import members
from tenants.membership.members import Member
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem
from tickets.desk_export import export_requests, stored
from tickets.desk_export.stored import ExportItem, ExportPartItem
from tickets.jobs.job_follower import JobFollower
from tickets.jobs.leased_job import EndAsked, LeasedJob

PART_BYTES: Final = 350 * 1024  # of the 400 KB that an item may have
PARTS_A_SECOND: Final = 2.0  # 700 of the 1,000 write units that one partition takes in a second
_SPARE_DAYS: Final = 1  # after which TTL may remove a part: the item alone says when the file has expired

Write = Callable[[TenantItem, Member, ExportItem], OutgoingMail]
_writers: Final[list[Write]] = []


def tell_with(write: Write) -> None:
    """Let `write` write the mail to the owner whose file is ready."""
    _writers[:] = [write]


class DeskExport(LeasedJob[ExportItem]):
    """Makes one export. It needs the rights of the lifecycle role."""

    kind = export_requests.EXPORTS

    def __init__(self, item: ExportItem, *, parts_a_second: float = PARTS_A_SECOND, **how: Any) -> None:
        super().__init__(item, **how)
        self._pause = 1 / parts_a_second
        self._file = uuid.uuid4().hex[:16]
        self._holding, self._step, self._written = "", 0, 0
        self._steps = sum(
            not (holding.left_out or (holding.exported and not holding.exported_to_owners))
            for holding in holdings.holdings()
        )

    def _carry_out(self) -> None:
        try:
            self._heed()
            with TemporaryDirectory() as folder:
                self._make(Path(folder) / "desk.zip")
        except EndAsked:
            self._note_end(Transaction(), state=export_requests.CANCELLED)

    def _make(self, path: Path) -> None:
        tenant = tenant_directory.get(self.item.tenant_id)
        tenant_export.export(tenant, path, with_objects=False, by=None, begun=self._begin, advance=self._count)
        placement = Placement.parse(tenant.placement)
        until = clock.now() + timedelta(days=export_requests.KEPT_DAYS)
        parts = self._store(path, placement, int((until + timedelta(days=_SPARE_DAYS)).timestamp()))
        self._note()  # and heeds a cancellation
        self._end(tenant, parts=parts, size=path.stat().st_size, placement=placement, until=clock.stamp(until))

    def _begin(self, holding: str) -> None:
        self._holding, self._step = holding, self._step + 1
        self._say(holding)

    def _count(self, items: int) -> None:
        self._written += items
        self._advance(items)
        self._look_up()

    def _store(self, path: Path, placement: Placement, expires_at: int) -> int:
        if placement != POOL:  # own tables may be older than this one of them
            provisioning.create_placed(self.item.tenant_id, placement)
        store, number = lifecycle_store(self.item.tenant_id, placement), 0
        with path.open("rb") as file:
            while content := file.read(PART_BYTES):
                number += 1
                key = stored.part(self._file, number)
                store.put(ExportPartItem(self.item.tenant_id, key, content=content, expires_at=expires_at))
                self._rest(self._pause)
        return number

    def _end(self, tenant: TenantItem, *, parts: int, size: int, placement: Placement, until: str) -> None:
        owners = members.owners_of(Store("tenant", tenant.tenant_id, placement))
        self.item.expires_at = until
        mails = [write(tenant, one, self.item) for write in _writers for one in owners if one.id == self.item.by_id]
        transaction = Transaction()
        left = outgoing.join(transaction, mails)
        by = Actor(self.item.by_id, self.item.by_email, self.item.by_origin)
        row = AuditEntry(
            tenant.tenant_id, AuditAction.EXPORT_MADE, by, "export", "tenant", tenant.name,
            after={"of": gettext_noop("without secrets"), "bytes": size},
        )  # fmt: skip
        self._note_end(
            transaction, row, state=export_requests.READY, file=self._file, parts=parts, size=size,
            placement=str(placement), expires_at=until,
        )  # fmt: skip
        outgoing.send_all(left)

    def _note_end(self, transaction: Transaction, *rows: AuditEntry, **values: Any) -> None:
        mine = (ExportItem.holder == self.me) & (ExportItem.state == self.item.state)
        actions: Sequence[Any] = self.kind.actions(holder="", trouble="", **self._always_noted(), **values)
        transaction.update(self.kind.of(self.item.tenant_id), [*actions], condition=mine)
        refused = Conflict(gettext("This export was cancelled or taken over meanwhile."))
        recording.commit(transaction, rows, refused=refused)

    def _is_to_end(self) -> bool:
        return bool(self.item.state == export_requests.CANCELLING)

    def _always_noted(self) -> dict[str, Any]:
        return {"phase": self._holding, "step": self._step, "steps": self._steps, "written": self._written}


def follower(**how: Any) -> JobFollower[ExportItem]:
    """Return what makes the exports that nobody makes. It needs the rights of the lifecycle role."""
    return JobFollower(export_requests.EXPORTS, partial(DeskExport, **how))
