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
from portal.dynamo.retry import retrying
from portal.dynamo.store import Transaction
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
    """The events that can be recorded, as `subject.verb`.

    `words` stand between who did it and the name of the thing that it was done to.
    """

    words: str

    def __new__(cls, value: str, words: str = "") -> AuditAction:
        action = str.__new__(cls, value)
        action._value_, action.words = value, words
        return action

    TENANT_CREATED = "tenant.created", "created"
    TENANT_IMPORTED = "tenant.imported", "brought in"  # all of it, from a file
    TENANT_SUSPENDED = "tenant.suspended", "suspended"
    TENANT_RESUMED = "tenant.resumed", "resumed"
    TENANT_CLOSED = "tenant.closed", "closed"  # it may be deleted once the grace is over
    TENANT_REOPENED = "tenant.reopened", "undid the closing of"
    TENANT_PURGE_ORDERED = "tenant.purge_ordered", "ordered the deletion of"
    TENANT_PURGE_WITHDRAWN = "tenant.purge_withdrawn", "took back the order to delete"
    TENANT_PURGE_BEGUN = "tenant.purge_begun", "began to delete"
    TENANT_PURGED = "tenant.purged", "deleted a desk, by"  # of the platform: it names the certificate and no tenant
    TENANT_RENAMED = "tenant.renamed", "renamed"
    TENANT_DEFAULTS_CHANGED = "tenant.defaults_changed", "changed the defaults of"
    TENANT_MAIL_CHANGED = "tenant.mail_changed", "changed the mail settings of"
    TENANT_OUTSIDE_CHANGED = "tenant.outside_changed", "changed the public pages of"
    TENANT_SETUP_CHANGED = "tenant.setup_changed", "changed the fields, kinds, groups or tags of tickets of"
    TENANT_SIGN_IN_CHANGED = "tenant.sign_in_changed", "changed how members sign in to"
    TENANT_LIMITS_CHANGED = "tenant.limits_changed", "changed the plan or limits of"
    TENANT_QUEUES_CHANGED = "tenant.queues_changed", "changed the queues of"
    TENANT_RESHARDED = "tenant.resharded", "asked for other shards of"  # somebody has asked for it
    TENANT_RESHARDING_STOPPED = "tenant.resharding_stopped", "stopped the resharding of"
    TENANT_MOVE_BEGUN = "tenant.move_begun", "asked for another place of"
    TENANT_MOVE_CANCELLED = "tenant.move_cancelled", "ended the move of"
    TENANT_MOVED = "tenant.moved", "moved the content of"
    TENANT_DISCARD_ORDERED = "tenant.discard_ordered", "asked to discard the old copy of"
    TENANT_COPY_DISCARDED = "tenant.copy_discarded", "discarded the old copy of"
    MEMBER_ADDED = "member.added", "added"
    MEMBER_INVITED = "member.invited", "invited"
    MEMBER_ROLE_CHANGED = "member.role_changed", "changed the role of"
    MEMBER_REMOVED = "member.removed", "removed"
    MEMBER_LEFT = "member.left", "left the desk"
    MEMBER_PROFILE_CHANGED = "member.profile_changed", "changed the name or signature of"
    INVITATION_RESENT = "invitation.resent", "resent the invitation to"
    INVITATION_REVOKED = "invitation.revoked", "revoked the invitation for"
    INVITATION_ACCEPTED = "invitation.accepted", "accepted the invitation"
    WORDS_REDACTED = "ticket.redacted", "took words out of"  # which words, nobody records
    PERSON_ERASED = "person.erased", "erased from the desk"  # from the desk, not from the trail
    REQUESTER_CREATED = "requester.created", "added the requester"
    REQUESTER_CHANGED = "requester.changed", "changed the requester"
    REQUESTER_MERGED = "requester.merged", "merged another person into the requester"
    REQUESTER_LINKS_REVOKED = "requester.links_revoked", "revoked the links of the requester"
    REQUESTER_MERGE_UNDONE = "requester.merge_undone", "undid a merge into the requester"
    ARTICLE_CREATED = "article.created", "began the article"
    ARTICLE_CHANGED = "article.changed", "changed the draft of the article"
    ARTICLE_PUBLISHED = "article.published", "published the article"
    ARTICLE_WITHDRAWN = "article.withdrawn", "withdrew the article"
    ARTICLE_DELETED = "article.deleted", "deleted the article"
    READY_ANSWER_CREATED = "ready_answer.created", "added the ready answer"
    READY_ANSWER_CHANGED = "ready_answer.changed", "changed the ready answer"
    READY_ANSWER_DELETED = "ready_answer.deleted", "deleted the ready answer"
    RULE_CREATED = "rule.created", "added the rule"
    RULE_CHANGED = "rule.changed", "changed the rule"
    RULE_DELETED = "rule.deleted", "deleted the rule"
    HELP_SECTIONS_CHANGED = "help.sections_changed", "changed the sections of the help centre of"
    TICKET_MARKED_SPAM = "ticket.marked_spam", "marked as spam"
    TICKET_UNMARKED_SPAM = "ticket.unmarked_spam", "took the mark of spam from"
    VIEW_SAVED = "view.saved", "saved the view"
    VIEW_CHANGED = "view.changed", "changed the view"
    VIEW_DELETED = "view.deleted", "deleted the view"
    TICKETS_HANDED_ON = "tickets.handed_on", "reassigned the tickets of"
    TICKETS_RESTORED = "tickets.restored", "restored"  # to what they were at a time
    BULK_ASKED = "tickets.bulk_asked", "asked for a change of many"
    BULK_CANCELLED = "tickets.bulk_cancelled", "stopped a change of many"
    RULE_REHEARSED = "rule.rehearsed", "rehearsed the rule"
    REHEARSAL_CANCELLED = "rule.rehearsal_cancelled", "stopped the rehearsal of the rule"
    USER_CREATED = "user.created", "created the account of"
    USER_RESET_LINK_SENT = "user.reset_link_sent", "sent a link for a new password to"  # by an operator
    USER_PASSWORD_SET = "user.password_set", "set the password of"  # the name of an event
    USER_PROFILE_CHANGED = "user.profile_changed", "changed the profile of"
    USER_DISABLED = "user.disabled", "disabled the account of"
    USER_ENABLED = "user.enabled", "enabled the account of"
    USER_MADE_OPERATOR = "user.made_operator", "gave an operator's rights to"
    USER_OPERATOR_ENDED = "user.operator_ended", "took an operator's rights from"
    USER_SIGNED_OUT_EVERYWHERE = "user.signed_out_everywhere", "ended all sessions of"
    USER_FACTOR_ADDED = "user.factor_added", "added a second factor to the account of"  # a second factor
    USER_FACTOR_REMOVED = "user.factor_removed", "removed a second factor from the account of"
    USER_RECOVERY_CODES_RENEWED = "user.recovery_codes_renewed", "replaced the recovery codes of"
    USER_RECOVERY_CODE_USED = "user.recovery_code_used", "used a recovery code of"
    USER_FACTORS_RESET = "user.factors_reset", "removed all second factors from the account of"
    ADDRESS_CLEARED = "address.cleared", "let mail go out again to"  # mail to it goes out again
    SESSION_STARTED = "session.started", "signed in to the desk"
    SESSION_REFUSED = "session.refused", "was refused at sign-in"
    SESSION_ENDED = "session.ended", "ended a session of"  # by an operator, or by its owner from elsewhere
    IMPERSONATION_BEGUN = "impersonation.begun", "began to act as"
    IMPERSONATION_ENDED = "impersonation.ended", "stopped acting as"
    CONTENT_OPENED = (
        "content.opened",
        "may read the content of",
    )
    WEBHOOK_ADDED = "webhook.added", "added the webhook"
    WEBHOOK_CHANGED = "webhook.changed", "changed the webhook"
    WEBHOOK_ROTATED = "webhook.rotated", "replaced the secret of the webhook"  # its secret was replaced
    WEBHOOK_PAUSED = "webhook.paused", "paused the webhook"
    WEBHOOK_RESUMED = "webhook.resumed", "resumed the webhook"
    WEBHOOK_REMOVED = "webhook.removed", "removed the webhook"
    API_KEY_CREATED = "api_key.created", "made the API key"
    API_KEY_CHANGED = "api_key.changed", "changed the API key"
    API_KEY_ROLLED = "api_key.rolled", "rolled the API key"  # another key replaces it
    API_KEY_REVOKED = "api_key.revoked", "revoked the API key"
    EXPORT_ASKED = "export.asked", "asked for an export of"  # of the whole desk: a job makes it
    EXPORT_CANCELLED = "export.cancelled", "cancelled the export of"
    EXPORT_MADE = "export.made", "exported"
    EXPORT_DOWNLOADED = "export.downloaded", "downloaded the export of"
    LETTER_DELIVERED = "letter.delivered", "handed to the desk the stray letter"
    LETTERS_DISCARDED = "letters.discarded", "discarded"
    LETTER_FILED = "letter.filed", "filed by hand"
    LETTERS_FILED = "letters.filed", "filed"  # those that were held back
    LETTER_DISCARDED = "letter.discarded", "discarded"
    DEAD_LETTER_REPLAYED = "dead_letter.replayed", "counted after all the dead letter"
    DEAD_LETTER_REFUSED = (
        "dead_letter.refused",
        "could not count the dead letter",
    )
    DEAD_LETTER_DROPPED = "dead_letter.dropped", "dropped the dead letter"
    DEAD_DELIVERY_REPLAYED = "dead_delivery.replayed", "sent again the dead delivery"
    DEAD_DELIVERY_DROPPED = "dead_delivery.dropped", "dropped the dead delivery"
    DELIVERIES_PAUSED = "deliveries.paused", "paused all deliveries of"
    DELIVERIES_DRAINED = "deliveries.drained", "let later deliveries wait, of"
    DELIVERIES_RESUMED = "deliveries.resumed", "resumed the deliveries of"
    DELIVERIES_DROPPED = "deliveries.dropped", "dropped the waiting deliveries of"
    RECORD_ADDED = "record.added", "added"  # of what else is in the operators' admin
    RECORD_CHANGED = "record.changed", "changed"
    RECORD_REMOVED = "record.removed", "removed"


def words_of(action: str) -> str:
    """Return the words of a stored action; one of a later version stands for itself."""
    return next((known.words for known in AuditAction if known == action), action)


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

    @classmethod
    def of_user(
        cls, user_id: str, email: str, action: AuditAction, by: Actor, before: Values = _NONE, after: Values = _NONE
    ) -> Self:
        """Return an event about an account, in the platform's own trail: an account belongs to no tenant."""
        return cls(PLATFORM, action, by, "user", user_id, email, before, after)


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
        moved = ChainItem(tenant_id, end.partition, sequence=sequence, hash=previous).with_unknown_of(end)
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
