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

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

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
    """The events that can be recorded, as `subject.verb`. `sentence` goes on behind the name of the actor."""

    sentence: str

    def __new__(cls, value: str, sentence: str = "") -> AuditAction:
        action = str.__new__(cls, value)
        action._value_, action.sentence = value, sentence
        return action

    TENANT_CREATED = "tenant.created", gettext_noop("created %(entity)s")
    TENANT_IMPORTED = "tenant.imported", gettext_noop("brought in %(entity)s")  # all of it, from a file
    TENANT_SUSPENDED = "tenant.suspended", gettext_noop("suspended %(entity)s")
    TENANT_RESUMED = "tenant.resumed", gettext_noop("resumed %(entity)s")
    TENANT_CLOSED = "tenant.closed", gettext_noop("closed %(entity)s")  # it may be deleted once the grace is over
    TENANT_REOPENED = "tenant.reopened", gettext_noop("undid the closing of %(entity)s")
    TENANT_PURGE_ORDERED = "tenant.purge_ordered", gettext_noop("ordered the deletion of %(entity)s")
    TENANT_PURGE_WITHDRAWN = "tenant.purge_withdrawn", gettext_noop("took back the order to delete %(entity)s")
    TENANT_PURGE_BEGUN = "tenant.purge_begun", gettext_noop("began to delete %(entity)s")
    TENANT_PURGED = (
        "tenant.purged",
        gettext_noop("deleted a desk, by %(entity)s"),
    )  # of the platform: it names the certificate and no tenant
    TENANT_RENAMED = "tenant.renamed", gettext_noop("renamed %(entity)s")
    TENANT_DEFAULTS_CHANGED = "tenant.defaults_changed", gettext_noop("changed the defaults of %(entity)s")
    TENANT_MAIL_CHANGED = "tenant.mail_changed", gettext_noop("changed the mail settings of %(entity)s")
    TENANT_OUTSIDE_CHANGED = "tenant.outside_changed", gettext_noop("changed the public pages of %(entity)s")
    TENANT_SETUP_CHANGED = (
        "tenant.setup_changed",
        gettext_noop("changed the fields, kinds, groups or tags of tickets of %(entity)s"),
    )
    TENANT_SIGN_IN_CHANGED = "tenant.sign_in_changed", gettext_noop("changed how members sign in to %(entity)s")
    TENANT_LIMITS_CHANGED = "tenant.limits_changed", gettext_noop("changed the plan or limits of %(entity)s")
    TENANT_QUEUES_CHANGED = "tenant.queues_changed", gettext_noop("changed the queues of %(entity)s")
    TENANT_RESHARDED = (
        "tenant.resharded",
        gettext_noop("asked for other shards of %(entity)s"),
    )  # somebody has asked for it
    TENANT_RESHARDING_STOPPED = "tenant.resharding_stopped", gettext_noop("stopped the resharding of %(entity)s")
    TENANT_MOVE_BEGUN = "tenant.move_begun", gettext_noop("asked for another place of %(entity)s")
    TENANT_MOVE_CANCELLED = "tenant.move_cancelled", gettext_noop("ended the move of %(entity)s")
    TENANT_MOVED = "tenant.moved", gettext_noop("moved the content of %(entity)s")
    TENANT_DISCARD_ORDERED = "tenant.discard_ordered", gettext_noop("asked to discard the old copy of %(entity)s")
    TENANT_COPY_DISCARDED = "tenant.copy_discarded", gettext_noop("discarded the old copy of %(entity)s")
    MEMBER_ADDED = "member.added", gettext_noop("added %(entity)s")
    MEMBER_INVITED = "member.invited", gettext_noop("invited %(entity)s")
    MEMBER_ROLE_CHANGED = "member.role_changed", gettext_noop("changed the role of %(entity)s")
    MEMBER_REMOVED = "member.removed", gettext_noop("removed %(entity)s")
    MEMBER_LEFT = "member.left", gettext_noop("left the desk")
    MEMBER_PROFILE_CHANGED = "member.profile_changed", gettext_noop("changed the name or signature of %(entity)s")
    INVITATION_RESENT = "invitation.resent", gettext_noop("resent the invitation to %(entity)s")
    INVITATION_REVOKED = "invitation.revoked", gettext_noop("revoked the invitation for %(entity)s")
    INVITATION_ACCEPTED = "invitation.accepted", gettext_noop("accepted the invitation")
    AUDITOR_INVITED = "auditor.invited", gettext_noop("invited as an auditor %(entity)s")
    AUDITOR_ADMITTED = "auditor.admitted", gettext_noop("accepted the invitation to be an auditor of the desk")
    AUDITOR_EXTENDED = "auditor.extended", gettext_noop("changed the end of the access of the auditor %(entity)s")
    AUDITOR_ENDED = "auditor.ended", gettext_noop("ended the access of the auditor %(entity)s")
    AUDITOR_LOOKED = "auditor.looked", gettext_noop("looked, as an auditor, at %(entity)s")
    TRAIL_VERIFIED = "audit.verified", gettext_noop("verified %(entity)s")
    WORDS_REDACTED = "ticket.redacted", gettext_noop("took words out of %(entity)s")  # which words, nobody records
    PERSON_ERASED = (
        "person.erased",
        gettext_noop("erased from the desk %(entity)s"),
    )  # from the desk, not from the trail
    REQUESTER_CREATED = "requester.created", gettext_noop("added the requester %(entity)s")
    REQUESTER_CHANGED = "requester.changed", gettext_noop("changed the requester %(entity)s")
    REQUESTER_MERGED = "requester.merged", gettext_noop("merged another person into the requester %(entity)s")
    REQUESTER_LINKS_REVOKED = "requester.links_revoked", gettext_noop("revoked the links of the requester %(entity)s")
    REQUESTER_MERGE_UNDONE = "requester.merge_undone", gettext_noop("undid a merge into the requester %(entity)s")
    ARTICLE_CREATED = "article.created", gettext_noop("began the article %(entity)s")
    ARTICLE_CHANGED = "article.changed", gettext_noop("changed the draft of the article %(entity)s")
    ARTICLE_PUBLISHED = "article.published", gettext_noop("published the article %(entity)s")
    ARTICLE_WITHDRAWN = "article.withdrawn", gettext_noop("withdrew the article %(entity)s")
    ARTICLE_DELETED = "article.deleted", gettext_noop("deleted the article %(entity)s")
    READY_ANSWER_CREATED = "ready_answer.created", gettext_noop("added the ready answer %(entity)s")
    READY_ANSWER_CHANGED = "ready_answer.changed", gettext_noop("changed the ready answer %(entity)s")
    READY_ANSWER_DELETED = "ready_answer.deleted", gettext_noop("deleted the ready answer %(entity)s")
    RULE_CREATED = "rule.created", gettext_noop("added the rule %(entity)s")
    RULE_CHANGED = "rule.changed", gettext_noop("changed the rule %(entity)s")
    RULE_DELETED = "rule.deleted", gettext_noop("deleted the rule %(entity)s")
    HELP_SECTIONS_CHANGED = (
        "help.sections_changed",
        gettext_noop("changed the sections of the help centre of %(entity)s"),
    )
    TICKET_MARKED_SPAM = "ticket.marked_spam", gettext_noop("marked as spam %(entity)s")
    TICKET_UNMARKED_SPAM = "ticket.unmarked_spam", gettext_noop("took the mark of spam from %(entity)s")
    VIEW_SAVED = "view.saved", gettext_noop("saved the view %(entity)s")
    VIEW_CHANGED = "view.changed", gettext_noop("changed the view %(entity)s")
    VIEW_DELETED = "view.deleted", gettext_noop("deleted the view %(entity)s")
    TICKETS_HANDED_ON = "tickets.handed_on", gettext_noop("reassigned the tickets of %(entity)s")
    TICKETS_RESTORED = "tickets.restored", gettext_noop("restored %(entity)s")  # to what they were at a time
    BULK_ASKED = "tickets.bulk_asked", gettext_noop("asked for a change of many %(entity)s")
    BULK_CANCELLED = "tickets.bulk_cancelled", gettext_noop("stopped a change of many %(entity)s")
    RULE_REHEARSED = "rule.rehearsed", gettext_noop("rehearsed the rule %(entity)s")
    REHEARSAL_CANCELLED = "rule.rehearsal_cancelled", gettext_noop("stopped the rehearsal of the rule %(entity)s")
    USER_CREATED = "user.created", gettext_noop("created the account of %(entity)s")
    USER_RESET_LINK_SENT = (
        "user.reset_link_sent",
        gettext_noop("sent a link for a new password to %(entity)s"),
    )  # by an operator
    USER_PASSWORD_SET = "user.password_set", gettext_noop("set the password of %(entity)s")  # the name of an event
    USER_PROFILE_CHANGED = "user.profile_changed", gettext_noop("changed the profile of %(entity)s")
    USER_DISABLED = "user.disabled", gettext_noop("disabled the account of %(entity)s")
    USER_ENABLED = "user.enabled", gettext_noop("enabled the account of %(entity)s")
    USER_MADE_OPERATOR = "user.made_operator", gettext_noop("gave an operator's rights to %(entity)s")
    USER_OPERATOR_ENDED = "user.operator_ended", gettext_noop("took an operator's rights from %(entity)s")
    USER_SIGNED_OUT_EVERYWHERE = "user.signed_out_everywhere", gettext_noop("ended all sessions of %(entity)s")
    USER_FACTOR_ADDED = (
        "user.factor_added",
        gettext_noop("added a second factor to the account of %(entity)s"),
    )  # a second factor
    USER_FACTOR_REMOVED = "user.factor_removed", gettext_noop("removed a second factor from the account of %(entity)s")
    USER_RECOVERY_CODES_RENEWED = (
        "user.recovery_codes_renewed",
        gettext_noop("replaced the recovery codes of %(entity)s"),
    )
    USER_RECOVERY_CODE_USED = "user.recovery_code_used", gettext_noop("used a recovery code of %(entity)s")
    USER_FACTORS_RESET = "user.factors_reset", gettext_noop("removed all second factors from the account of %(entity)s")
    ADDRESS_CLEARED = (
        "address.cleared",
        gettext_noop("let mail go out again to %(entity)s"),
    )  # mail to it goes out again
    SESSION_STARTED = "session.started", gettext_noop("signed in to the desk")
    SESSION_REFUSED = "session.refused", gettext_noop("was refused at sign-in %(entity)s")
    SESSION_ENDED = (
        "session.ended",
        gettext_noop("ended a session of %(entity)s"),
    )  # by an operator, or by its owner from elsewhere
    IMPERSONATION_BEGUN = "impersonation.begun", gettext_noop("began to act as %(entity)s")
    IMPERSONATION_ENDED = "impersonation.ended", gettext_noop("stopped acting as %(entity)s")
    CONTENT_OPENED = (
        "content.opened",
        gettext_noop("may read the content of %(entity)s"),
    )
    WEBHOOK_ADDED = "webhook.added", gettext_noop("added the webhook %(entity)s")
    WEBHOOK_CHANGED = "webhook.changed", gettext_noop("changed the webhook %(entity)s")
    WEBHOOK_ROTATED = (
        "webhook.rotated",
        gettext_noop("replaced the secret of the webhook %(entity)s"),
    )  # its secret was replaced
    WEBHOOK_PAUSED = "webhook.paused", gettext_noop("paused the webhook %(entity)s")
    WEBHOOK_RESUMED = "webhook.resumed", gettext_noop("resumed the webhook %(entity)s")
    WEBHOOK_REMOVED = "webhook.removed", gettext_noop("removed the webhook %(entity)s")
    API_KEY_CREATED = "api_key.created", gettext_noop("made the API key %(entity)s")
    API_KEY_CHANGED = "api_key.changed", gettext_noop("changed the API key %(entity)s")
    API_KEY_ROLLED = "api_key.rolled", gettext_noop("rolled the API key %(entity)s")  # another key replaces it
    API_KEY_REVOKED = "api_key.revoked", gettext_noop("revoked the API key %(entity)s")
    EXPORT_ASKED = (
        "export.asked",
        gettext_noop("asked for an export of %(entity)s"),
    )  # of the whole desk: a job makes it
    EXPORT_CANCELLED = "export.cancelled", gettext_noop("cancelled the export of %(entity)s")
    EXPORT_MADE = "export.made", gettext_noop("exported %(entity)s")
    EXPORT_DOWNLOADED = "export.downloaded", gettext_noop("downloaded the export of %(entity)s")
    ISOLATION_RUN_ASKED = "isolation_run.asked", gettext_noop("ordered an attack on %(entity)s")  # a job makes it
    ISOLATION_RUN_CANCELLED = "isolation_run.cancelled", gettext_noop("stopped the attack on %(entity)s")
    ISOLATION_RUN_ENDED = "isolation_run.ended", gettext_noop("got the result of the attack on %(entity)s")
    LETTER_DELIVERED = "letter.delivered", gettext_noop("handed to the desk the stray letter %(entity)s")
    LETTERS_DISCARDED = "letters.discarded", gettext_noop("discarded %(entity)s")
    LETTER_FILED = "letter.filed", gettext_noop("asked to have filed %(entity)s")
    LETTERS_FILED = "letters.filed", gettext_noop("filed %(entity)s")  # those that were held back
    LETTER_DISCARDED = "letter.discarded", gettext_noop("discarded %(entity)s")
    DEAD_LETTER_REPLAYED = "dead_letter.replayed", gettext_noop("counted after all the dead letter %(entity)s")
    DEAD_LETTER_REFUSED = (
        "dead_letter.refused",
        gettext_noop("could not count the dead letter %(entity)s"),
    )
    DEAD_LETTER_DROPPED = "dead_letter.dropped", gettext_noop("dropped the dead letter %(entity)s")
    DEAD_DELIVERY_REPLAYED = "dead_delivery.replayed", gettext_noop("sent again the dead delivery %(entity)s")
    DEAD_DELIVERY_DROPPED = "dead_delivery.dropped", gettext_noop("dropped the dead delivery %(entity)s")
    DELIVERIES_PAUSED = "deliveries.paused", gettext_noop("paused all deliveries of %(entity)s")
    DELIVERIES_DRAINED = "deliveries.drained", gettext_noop("let later deliveries wait, of %(entity)s")
    DELIVERIES_RESUMED = "deliveries.resumed", gettext_noop("resumed the deliveries of %(entity)s")
    DELIVERIES_DROPPED = "deliveries.dropped", gettext_noop("dropped the waiting deliveries of %(entity)s")
    RESTORE_DRILLED = "restore.drilled", gettext_noop("ran a restore drill of %(entity)s")
    RECORD_ADDED = "record.added", gettext_noop("added %(entity)s")  # of what else is in the operators' admin
    RECORD_CHANGED = "record.changed", gettext_noop("changed %(entity)s")
    RECORD_REMOVED = "record.removed", gettext_noop("removed %(entity)s")


def sentence_of(action: str) -> str:
    """Return the sentence about a stored action, with a place for the entity; one of a later version stands for
    itself."""
    known = next((known.sentence for known in AuditAction if known == action), "")
    return _(known) if known else f"{action} %(entity)s".replace("%", "%%").replace("%%(entity)s", "%(entity)s")


def words_of(action: str) -> str:
    """Return the words of a stored action without its entity."""
    return " ".join((sentence_of(action) % {"entity": ""}).split())


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
        given_up=lambda: Throttled(_("Too many changes are being made at the same time.")),
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
