"""The audit trail: who did what, from where, what was before and what after; written with the change itself.

`commit` sends a change and its rows in one transaction, so that neither exists without the other. A tenant's rows are
chained (`tenants/audit_trail/chain.py`), so that one that is altered, removed or slipped in later is found. Events
that are no tenant's, such as a refused sign-in, lie in the partition of PLATFORM, which only operators read.

Source: the isolation model's threat "insider accesses DynamoDB directly: audit trail in Audit.AdminActions".
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from portal import clock
from portal.dynamo import platform
from portal.dynamo.repository import Transaction
from portal.dynamo.retry import retrying
from portal.errors import Throttled, TransactionRefused
from portal.schema import keys
from tenants.audit_trail import chain
from tenants.audit_trail import keys as audit_keys
from tenants.audit_trail.items import AuditItem, ChainItem

PLATFORM: Final = keys.PLATFORM
ATTEMPTS: Final = 12
VALUE_LIMIT: Final = 500  # characters of one value before or after; what is longer is cut
# What the name of a value may not contain: a secret never gets into the trail.
_SECRET: Final = ("password", "token", "secret", "hash", "cookie", "session_key", "credential")
# Members of the transaction that depend on where the chain ends.
_ROW, _CHAIN = "audit row", "end of the audit chain"


class AuditAction(StrEnum):
    """What can happen, as `subject.verb`."""

    TENANT_CREATED = "tenant.created"
    TENANT_SUSPENDED = "tenant.suspended"
    TENANT_RESUMED = "tenant.resumed"
    TENANT_RENAMED = "tenant.renamed"
    TENANT_DEFAULTS_CHANGED = "tenant.defaults_changed"
    TENANT_LIMITS_CHANGED = "tenant.limits_changed"
    MEMBER_ADDED = "member.added"
    MEMBER_INVITED = "member.invited"
    MEMBER_ROLE_CHANGED = "member.role_changed"
    MEMBER_REMOVED = "member.removed"
    MEMBER_LEFT = "member.left"
    INVITATION_RESENT = "invitation.resent"
    INVITATION_REVOKED = "invitation.revoked"
    INVITATION_ACCEPTED = "invitation.accepted"
    TICKETS_HANDED_ON = "tickets.handed_on"
    USER_CREATED = "user.created"
    USER_PASSWORD_SET = "user.password_set"  # noqa: S105  # the name of an event
    USER_DISABLED = "user.disabled"
    USER_ENABLED = "user.enabled"
    USER_MADE_OPERATOR = "user.made_operator"
    USER_OPERATOR_ENDED = "user.operator_ended"
    USER_SIGNED_OUT_EVERYWHERE = "user.signed_out_everywhere"
    SESSION_STARTED = "session.started"
    SESSION_REFUSED = "session.refused"
    SESSION_ENDED = "session.ended"  # by an operator, or by its owner from elsewhere
    EXPORT_MADE = "export.made"
    DEAD_LETTER_REPLAYED = "dead_letter.replayed"
    DEAD_LETTER_REFUSED = "dead_letter.refused"  # to be replayed: it still cannot be counted
    DEAD_LETTER_DROPPED = "dead_letter.dropped"
    RECORD_ADDED = "record.added"  # of what else is in the operators' admin
    RECORD_CHANGED = "record.changed"
    RECORD_REMOVED = "record.removed"


@dataclass(frozen=True)
class Actor:
    """Who acts, and from where: a network address, "admin", or the name of a command.

    `id` is a user id; "system" for a command, "anonymous" for somebody who is not signed in.
    """

    id: str = "system"
    email: str = ""
    origin: str = ""


SYSTEM: Final = Actor()


@dataclass(frozen=True)
class AuditEntry:
    """One event, before it is written. `tenant_id` is the tenant that it happened in, or PLATFORM.

    `entity_type` is "tenant", "user", "invitation" ..., `entity_name` what people call it. Raises ValueError where the
    name of a value before or after is that of a secret.
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
                raise ValueError(f"{name} does not belong into the audit trail")


def commit(transaction: Transaction, entries: Sequence[AuditEntry]) -> None:
    """The changes and their rows, all or none. The given transaction is not altered.

    Where only the chain has moved on in between, or another transaction was at the same items, it is sent again.
    Raises TransactionRefused where a member of the caller's was refused, and Throttled when nothing helped.
    """

    def attempt() -> None:
        whole = transaction.copy()
        _add_rows(whole, entries)
        platform.transact(whole)

    retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused) and error.is_passing(_ROW, _CHAIN),
        attempts=ATTEMPTS,
        given_up=Throttled("Too much is being changed at the same time."),
    )


def record(*entries: AuditEntry) -> None:
    """Events without a change of ours beside them."""
    commit(Transaction(), entries)


def _add_rows(transaction: Transaction, entries: Sequence[AuditEntry]) -> None:
    """The rows of one tenant go into one chain partition, so that a transaction moves one end of a chain per tenant."""
    for tenant_id in dict.fromkeys(entry.tenant_id for entry in entries):
        end = chain.end_of(tenant_id)
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
        audit_keys.audit_row(clock.stamp(), uuid.uuid4().hex),
        tenant_actor=audit_keys.audit_actor(entry.tenant_id, entry.by.id),
        tenant_entity=audit_keys.audit_entity(entry.tenant_id, entry.entity_type, entry.entity_id),
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
