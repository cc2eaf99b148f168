"""Record who did what, from where, and what was before and after, together with the change itself.

`commit` sends a change and its rows in one transaction, so that neither exists without the other. The rows of a tenant
are chained (`tenants/audit_trail/chain.py`), so that a row that is altered, deleted or inserted later is detected.
Events that belong to no tenant, such as a refused sign-in, are in the partition of PLATFORM, which only operators read.

Source: the isolation model's threat "insider accesses DynamoDB directly: audit trail in Audit.AdminActions".
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Self

from portal import clock
from portal.dynamo import platform
from portal.dynamo.client import fan_out
from portal.dynamo.repository import Transaction
from portal.dynamo.retry import retrying
from portal.errors import PortalError, Throttled, TransactionRefused
from portal.schema import keys
from tenants.audit_trail import chain
from tenants.audit_trail.stored import AuditItem, ChainItem, audit_actor_key, audit_entity_key, audit_row_key

PLATFORM: Final = keys.PLATFORM
ATTEMPTS: Final = 20  # of one transaction, whatever refused it
VALUE_LIMIT: Final = 500  # characters of one value before or after; what is longer is cut
# Words in the name of a value that is a secret, and so must not be recorded.
_SECRET: Final = ("password", "token", "secret", "hash", "cookie", "session_key", "credential")
# Members of the transaction that depend on where the chain ends.
_ROW, _CHAIN = "audit row", "end of the audit chain"


class AuditAction(StrEnum):
    """The events that can be recorded, as `subject.verb`."""

    TENANT_CREATED = "tenant.created"
    TENANT_IMPORTED = "tenant.imported"  # all of it, from a file
    TENANT_SUSPENDED = "tenant.suspended"
    TENANT_RESUMED = "tenant.resumed"
    TENANT_CLOSED = "tenant.closed"  # it may be deleted once the grace is over
    TENANT_REOPENED = "tenant.reopened"
    TENANT_PURGE_ORDERED = "tenant.purge_ordered"
    TENANT_PURGE_WITHDRAWN = "tenant.purge_withdrawn"
    TENANT_PURGE_BEGUN = "tenant.purge_begun"
    TENANT_PURGED = "tenant.purged"  # of the platform: it names the certificate and no tenant
    TENANT_RENAMED = "tenant.renamed"
    TENANT_DEFAULTS_CHANGED = "tenant.defaults_changed"
    TENANT_SIGN_IN_CHANGED = "tenant.sign_in_changed"
    TENANT_LIMITS_CHANGED = "tenant.limits_changed"
    TENANT_QUEUES_CHANGED = "tenant.queues_changed"
    TENANT_RESHARDED = "tenant.resharded"  # somebody has asked for it
    TENANT_RESHARDING_STOPPED = "tenant.resharding_stopped"
    TENANT_MOVE_BEGUN = "tenant.move_begun"
    TENANT_MOVE_CANCELLED = "tenant.move_cancelled"
    TENANT_MOVED = "tenant.moved"
    TENANT_DISCARD_ORDERED = "tenant.discard_ordered"
    TENANT_COPY_DISCARDED = "tenant.copy_discarded"
    MEMBER_ADDED = "member.added"
    MEMBER_INVITED = "member.invited"
    MEMBER_ROLE_CHANGED = "member.role_changed"
    MEMBER_REMOVED = "member.removed"
    MEMBER_LEFT = "member.left"
    INVITATION_RESENT = "invitation.resent"
    INVITATION_REVOKED = "invitation.revoked"
    INVITATION_ACCEPTED = "invitation.accepted"
    PERSON_ERASED = "person.erased"  # from the desk, not from the trail
    TICKETS_HANDED_ON = "tickets.handed_on"
    TICKETS_RESTORED = "tickets.restored"  # to what they were at a time
    USER_CREATED = "user.created"
    USER_RESET_LINK_SENT = "user.reset_link_sent"  # by an operator
    USER_PASSWORD_SET = "user.password_set"  # noqa: S105  # the name of an event
    USER_DISABLED = "user.disabled"
    USER_ENABLED = "user.enabled"
    USER_MADE_OPERATOR = "user.made_operator"
    USER_OPERATOR_ENDED = "user.operator_ended"
    USER_SIGNED_OUT_EVERYWHERE = "user.signed_out_everywhere"
    USER_FACTOR_ADDED = "user.factor_added"  # a second factor
    USER_FACTOR_REMOVED = "user.factor_removed"
    USER_RECOVERY_CODES_RENEWED = "user.recovery_codes_renewed"
    USER_RECOVERY_CODE_USED = "user.recovery_code_used"
    USER_FACTORS_RESET = "user.factors_reset"
    ADDRESS_CLEARED = "address.cleared"  # mail to it goes out again
    SESSION_STARTED = "session.started"
    SESSION_REFUSED = "session.refused"
    SESSION_ENDED = "session.ended"  # by an operator, or by its owner from elsewhere
    IMPERSONATION_BEGUN = "impersonation.begun"
    IMPERSONATION_ENDED = "impersonation.ended"
    CONTENT_OPENED = "content.opened"  # an operator may see what the desk's people have written
    WEBHOOK_ADDED = "webhook.added"
    WEBHOOK_CHANGED = "webhook.changed"
    WEBHOOK_ROTATED = "webhook.rotated"  # its secret was replaced
    WEBHOOK_PAUSED = "webhook.paused"
    WEBHOOK_RESUMED = "webhook.resumed"
    WEBHOOK_REMOVED = "webhook.removed"
    API_KEY_CREATED = "api_key.created"
    API_KEY_CHANGED = "api_key.changed"
    API_KEY_ROLLED = "api_key.rolled"  # another key replaces it
    API_KEY_REVOKED = "api_key.revoked"
    EXPORT_ASKED = "export.asked"  # of the whole desk: a job makes it
    EXPORT_CANCELLED = "export.cancelled"
    EXPORT_MADE = "export.made"
    EXPORT_DOWNLOADED = "export.downloaded"
    DEAD_LETTER_REPLAYED = "dead_letter.replayed"
    DEAD_LETTER_REFUSED = "dead_letter.refused"  # to be replayed: it still cannot be counted
    DEAD_LETTER_DROPPED = "dead_letter.dropped"
    DEAD_DELIVERY_REPLAYED = "dead_delivery.replayed"
    DEAD_DELIVERY_DROPPED = "dead_delivery.dropped"
    DELIVERIES_PAUSED = "deliveries.paused"
    DELIVERIES_DRAINED = "deliveries.drained"
    DELIVERIES_RESUMED = "deliveries.resumed"
    DELIVERIES_DROPPED = "deliveries.dropped"
    RECORD_ADDED = "record.added"  # of what else is in the operators' admin
    RECORD_CHANGED = "record.changed"
    RECORD_REMOVED = "record.removed"


@dataclass(frozen=True)
class Actor:
    """The person or program that acts. `origin` is a network address, "admin", or the name of a command.

    `id` is a user id, "system" for a command, or "anonymous" for somebody who is not signed in.
    """

    id: str = "system"
    email: str = ""
    origin: str = ""


SYSTEM: Final = Actor()


Values = Mapping[str, object]
_NONE: Final[Values] = {}
ReadChange = tuple[Transaction, Sequence["AuditEntry"]]  # a change and its rows


@dataclass(frozen=True)
class AuditEntry:
    """One event, before it is written. `tenant_id` is the tenant that it happened in, or PLATFORM.

    `entity_type` is "tenant", "user", "invitation" and so on, `entity_name` is what people call the entity. Raises
    ValueError if a value before or after is named like a secret.
    """

    tenant_id: str
    action: AuditAction
    by: Actor
    entity_type: str
    entity_id: str
    entity_name: str = ""
    before: Mapping[str, object] = field(default_factory=dict)
    after: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (*self.before, *self.after):
            if any(word in name.casefold() for word in _SECRET):
                raise ValueError(f"{name} does not belong in the audit trail")

    @classmethod
    def of_tenant(
        cls, tenant: Any, action: AuditAction, by: Actor, before: Values = _NONE, after: Values = _NONE
    ) -> Self:
        """Return an event about a tenant itself, which has a `tenant_id` and a `name`."""
        return cls(tenant.tenant_id, action, by, "tenant", tenant.tenant_id, tenant.name, before, after)


def commit(transaction: Transaction, entries: Sequence[AuditEntry], *, refused: PortalError | None = None) -> None:
    """Write a change and its audit rows in one transaction. The given transaction is not altered.

    Raises `refused`, or TransactionRefused where that is None, if a member of the given transaction was refused, and
    Throttled if too many others write at the same time.
    """
    try:
        commit_built(transaction.copy, entries)
    except TransactionRefused as error:
        if refused is None:
            raise
        raise refused from error


def commit_built(
    build: Callable[[], Transaction], entries: Sequence[AuditEntry], *, depending: Sequence[str] = ()
) -> None:
    """Do the same for a change that depends on what it reads: `build` reads and returns it, anew for each attempt.

    It is attempted again if only the audit chain has moved on, if another transaction held an item, or if one of the
    members named in `depending` was refused, which says that what `build` had read was out of date. Raises what
    `commit` and `build` raise.
    """

    def attempt() -> None:
        transaction = build()
        about = dict.fromkeys(entry.tenant_id for entry in entries)
        _add_rows(transaction, entries, {tenant_id: chain.end_of(tenant_id) for tenant_id in about})
        platform.PLATFORM.transact(transaction)

    _attempted(attempt, depending)


def record(*entries: AuditEntry) -> None:
    """Write audit rows for something that is no change of stored items, such as a sign-in."""
    commit(Transaction(), entries)


def commit_read(tenant_id: str, build: Callable[[], ReadChange | None], *, depending: Sequence[str] = ()) -> None:
    """Do the same where the rows, all of one tenant, follow from what `build` reads too: for one round trip less, the
    end of the audit chain is read beside it. It may return None, where nothing is to be written.
    """

    def attempt() -> None:
        ends: dict[str, ChainItem] = {}
        built: list[ReadChange | None] = []
        fan_out([lambda: built.append(build()), lambda: ends.update({tenant_id: chain.end_of(tenant_id)})])
        if built[0] is not None:
            transaction, entries = built[0]
            _add_rows(transaction, entries, ends)
            platform.PLATFORM.transact(transaction)

    _attempted(attempt, depending)


def _attempted(attempt: Callable[[], None], depending: Sequence[str]) -> None:
    retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused) and error.is_passing(_ROW, _CHAIN, *depending),
        attempts=ATTEMPTS,
        given_up=Throttled("Too many changes are being made at the same time."),
    )


def _add_rows(transaction: Transaction, entries: Sequence[AuditEntry], ends: Mapping[str, ChainItem]) -> None:
    """Add the rows of the entries, and move the end of one chain partition for each tenant that they are about."""
    for tenant_id, end in ends.items():
        sequence, previous = (int(end.sequence), end.hash) if end.hash else (0, "")
        rows = [_row(entry) for entry in entries if entry.tenant_id == tenant_id]
        for row in rows:
            sequence += 1
            row.partition, row.sequence, row.previous = end.partition, sequence, previous
            row.hash = previous = chain.hash_of(row.serialize(null_check=False))
            transaction.put(row, name=_ROW, condition=AuditItem.timestamp_event_id.does_not_exist())
        unmoved = (ChainItem.sequence == end.sequence) & (ChainItem.hash == end.hash)
        first = ChainItem.partition.does_not_exist()
        moved = ChainItem(tenant_id, end.partition, sequence=sequence, hash=previous)
        transaction.put(moved, name=_CHAIN, condition=unmoved if end.hash else first)


def _row(entry: AuditEntry) -> AuditItem:
    return AuditItem(
        keys.tenant(entry.tenant_id),
        audit_row_key(clock.stamp(), uuid.uuid4().hex),
        tenant_actor=audit_actor_key(entry.tenant_id, entry.by.id),
        tenant_entity=audit_entity_key(entry.tenant_id, entry.entity_type, entry.entity_id),
        hash="",
        action=entry.action.value,
        actor_id=entry.by.id,
        actor_email=entry.by.email,
        origin=entry.by.origin,
        entity_type=entry.entity_type,
        entity_id=entry.entity_id,
        entity_name=entry.entity_name,
        before=_written(entry.before),
        after=_written(entry.after),
    )


def _written(values: Mapping[str, object]) -> str:
    cut = {name: str(value)[:VALUE_LIMIT] for name, value in values.items()}
    return json.dumps(cut, ensure_ascii=False, sort_keys=True) if cut else ""
