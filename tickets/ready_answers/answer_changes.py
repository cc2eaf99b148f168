"""Write ready answers: create, change and delete. Agents have their own; shared ones take an admin, and are audited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.store import Transaction
from portal.dynamo.transaction import Companion, with_companion
from portal.errors import Conflict, Forbidden, Overtaken, TransactionRefused
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry, ReadChange
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext
from tickets.ready_answers import answer_reading, stored
from tickets.ready_answers.answer_reading import Given
from tickets.ready_answers.stored import DESK, ReadyAnswerItem, ReadyAnswerRow, WordRow

CHANGED: Final = gettext_noop("Somebody else has saved this answer meanwhile.")
_SHORTCUT: Final = "shortcut"


class ShortcutTaken(Conflict):
    """Another answer of the same owner has this shortcut."""

    code = "shortcut_taken"

    def __init__(self) -> None:
        super().__init__(_("Another answer has this shortcut already."), field="shortcut")


def create(
    tenant: TenantContext,
    given: Given,
    *,
    shared: bool,
    by: Actor,
    companion: Companion[ReadyAnswerItem] | None = None,
) -> ReadyAnswerItem:
    """Add an answer. A `companion` is told of it. Raises Invalid, ShortcutTaken."""
    _refuse_others(tenant, shared=shared)
    clean = given.cleaned(tenant)
    answer_id = stored.new_id(shared=shared)
    item = _item(tenant, DESK if shared else tenant.user_id, answer_id, clean, version=1)
    waiting = [companion]

    def build() -> ReadChange:
        transaction = with_companion(waiting.pop() if waiting else None, Transaction)
        transaction.put(item, condition=ReadyAnswerItem.pk.does_not_exist())
        _put_rows(transaction, item, set())
        if companion is not None:
            companion.join(transaction, item)
        return transaction, [_entry(tenant, AuditAction.READY_ANSWER_CREATED, by, item, after=_told(clean))]

    _commit(tenant, build, companion, shared=shared)
    return item


def change(
    tenant: TenantContext, answer_id: str, given: Given, *, version: int | None = None, by: Actor
) -> ReadyAnswerItem:
    """Change an answer. `version` is the one that its author saw, None for whatever it is.

    Raises NotFound, Invalid, ShortcutTaken, and Overtaken where somebody else has saved meanwhile.
    """
    shared = answer_reading.owner_of(tenant, answer_id) == DESK
    _refuse_others(tenant, shared=shared)
    clean = given.cleaned(tenant)
    made: list[ReadyAnswerItem] = []

    def build() -> ReadChange:
        old = answer_reading.read(tenant, answer_id)
        seen = int(old.version)
        if version not in (None, seen):
            raise Overtaken(_(CHANGED))
        before = Given.of(old)
        item = _item(tenant, old.owner, answer_id, clean, version=seen + 1).with_unknown_of(old)
        made[:] = [item]
        transaction = Transaction()
        transaction.put(item, condition=ReadyAnswerItem.version == seen)
        if old.shortcut != item.shortcut:
            transaction.delete(ReadyAnswerRow(old.pk, stored.row(old.owner, old.shortcut)))
        _put_rows(transaction, item, {*answer_reading.found_by(old.title, old.shortcut)})
        told = _told(before), _told(clean)
        return transaction, [_entry(tenant, AuditAction.READY_ANSWER_CHANGED, by, item, *_differing(*told))]

    _commit(tenant, build, None, shared=shared)
    return made[0]


def delete(tenant: TenantContext, answer_id: str, *, by: Actor) -> None:
    """Delete an answer. Comments that were made of it stay. Raises NotFound, Overtaken."""
    shared = answer_reading.owner_of(tenant, answer_id) == DESK
    _refuse_others(tenant, shared=shared)

    def build() -> ReadChange:
        old = answer_reading.read(tenant, answer_id)
        transaction = Transaction()
        remove(transaction, old)
        return transaction, [_entry(tenant, AuditAction.READY_ANSWER_DELETED, by, old, before=_told(Given.of(old)))]

    _commit(tenant, build, None, shared=shared)


def remove(transaction: Transaction, item: ReadyAnswerItem) -> None:
    """Delete an answer as it was read, with its rows."""
    transaction.delete(item, condition=ReadyAnswerItem.version == int(item.version))
    transaction.delete(ReadyAnswerRow(item.pk, stored.row(item.owner, item.shortcut)))
    for word in answer_reading.found_by(item.title, item.shortcut):
        transaction.delete(WordRow(item.pk, stored.word(item.owner, word, item.answer_id)))


def rewrite(transaction: Transaction, item: ReadyAnswerItem, *, title: str, body: str) -> None:
    """Give an answer as it was read another title and text, as the erasure of a person does."""
    words, seen = {*answer_reading.found_by(item.title, item.shortcut)}, int(item.version)
    item.title, item.body, item.version = title, body, seen + 1
    transaction.put(item, condition=ReadyAnswerItem.version == seen)
    _put_rows(transaction, item, words)


def _refuse_others(tenant: TenantContext, *, shared: bool) -> None:
    if shared and not tenant.is_admin and tenant.standing is None:
        raise Forbidden(_("Only admins and owners can change shared answers."))


def _item(tenant: TenantContext, owner: str, answer_id: str, given: Given, *, version: int) -> ReadyAnswerItem:
    return ReadyAnswerItem(
        tenant.repository.key(stored.answers),
        stored.text(owner, answer_id),
        answer_id=answer_id,
        owner=owner,
        title=given.title,
        shortcut=given.shortcut,
        body=given.body,
        status=given.status,
        tags=[*given.tags],
        resolver=given.resolver,
        version=version,
        changed_at=clock.stamp(),
    )


def _put_rows(transaction: Transaction, item: ReadyAnswerItem, words: set[str]) -> None:
    """Write the rows of an answer, which was found by these words before."""
    shown: dict[str, Any] = {
        "answer_id": item.answer_id,
        "owner": item.owner,
        "title": item.title,
        "shortcut": item.shortcut,
    }
    free = ReadyAnswerRow.pk.does_not_exist() | (ReadyAnswerRow.answer_id == item.answer_id)
    transaction.put(
        ReadyAnswerRow(item.pk, stored.row(item.owner, item.shortcut), **shown), name=_SHORTCUT, condition=free
    )
    now = answer_reading.found_by(item.title, item.shortcut)
    for word in now:
        transaction.put(WordRow(item.pk, stored.word(item.owner, word, item.answer_id), word=word, **shown))
    for word in words - {*now}:
        transaction.delete(WordRow(item.pk, stored.word(item.owner, word, item.answer_id)))


def _commit(
    tenant: TenantContext,
    build: Callable[[], ReadChange],
    companion: Companion[ReadyAnswerItem] | None,
    *,
    shared: bool,
) -> None:
    """Write a change if whoever makes it still has their role, a shared answer's with its audit row."""

    def with_role() -> ReadChange:
        built = build()
        member_changes.require_role(built[0], tenant)
        return built

    try:
        if shared:
            recording.commit_read(tenant.tenant_id, with_role)
        else:
            recording.commit(with_role()[0], [])
    except TransactionRefused as refused:
        if companion is not None:
            companion.blame(refused)
        member_changes.blame_standing(tenant, refused)
        if _SHORTCUT in refused.names and (reason := refused.reason(_SHORTCUT)) and reason.item:
            raise ShortcutTaken from refused
        raise Overtaken(_(CHANGED)) from refused


def _told(given: Given) -> dict[str, str]:
    """Return the values as the audit trail has them, which outlives an erasure: of the text its length."""
    return {
        "shortcut": given.shortcut,
        "text": f"{len(given.body):,} characters",
        "status": given.status,
        "tags": ", ".join(given.tags),
        "assignee": given.resolver,
    }


def _differing(before: dict[str, str], after: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    names = [name for name in after if before[name] != after[name]]
    return {name: before[name] for name in names}, {name: after[name] for name in names}


def _entry(
    tenant: TenantContext,
    action: AuditAction,
    by: Actor,
    item: ReadyAnswerItem,
    before: dict[str, str] | None = None,
    after: dict[str, str] | None = None,
) -> AuditEntry:
    return AuditEntry(
        tenant.tenant_id, action, by, "ready_answer", item.answer_id, item.title, before or {}, after or {}
    )
