"""Ask for the rehearsal of a rule, told beforehand what it costs; watch it, cancel it, and look at what it found.

A desk has one rehearsal at a time, and keeps the last one for a week.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from itertools import islice
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext
from tickets.jobs.leased_job import JobKind
from tickets.rules import rule_changes, stored
from tickets.rules.definition import On
from tickets.rules.rehearsal import WouldDo
from tickets.rules.stored import RehearsalItem, RehearsalPartItem, RuleItem
from tickets.ticket.fields import CUSTOM_PREFIX, FieldChange
from tickets.time_machine import past_events

RUNNING, CANCELLING, CANCELLED, DONE, FAILED = "running", "cancelling", "cancelled", "done", "failed"
LISTING, TRYING = "listing", "trying"
REHEARSALS: Final = JobKind("rehearsal", RehearsalItem, stored.REHEARSALS, "platform", (RUNNING, CANCELLING))
DAYS: Final = 30  # of the past
MOST: Final = 5_000  # tickets, those that changed last
PER_SECOND: Final = 50.0  # tickets, each a Query of its whole history
KEPT_SECONDS: Final = 7 * 86400
COUNTED: Final = 2_000  # tickets, to say beforehand how many there are
SHOWN: Final = 20  # parts of findings on a page
NO_HISTORY: Final = gettext_noop(
    "The history of tickets does not tell when a deadline came, so this rule cannot be rehearsed."
)
_BUSY: Final = gettext_noop("Another rehearsal of this desk is running. Wait until it has ended, or cancel it.")


@dataclass(frozen=True)
class Extent:
    """The extent of a rehearsal: tickets, with at least so many entries; or `is_more` than was counted."""

    tickets: int
    entries: int
    is_more: bool

    @property
    def seconds(self) -> int:
        """Return about how long it takes, 0 for less than a second."""
        return int((MOST if self.is_more else min(self.tickets, MOST)) / PER_SECOND)


def extent(tenant: TenantContext) -> Extent:
    """Count what a rehearsal would read: a page of the list for each 500 tickets, up to COUNTED of them."""
    rows = [*islice(past_events.changed_since(tenant, since()), COUNTED + 1)]
    entries = sum(int(row.comment_count) + row.version_told for row in rows[:COUNTED])
    return Extent(min(len(rows), COUNTED), entries, len(rows) > COUNTED)


def since() -> str:
    """Return the moment at which the last month began."""
    return past_events.days_ago(DAYS)


def can_rehearse(rule: RuleItem) -> bool:
    """Tell whether the history of tickets has the events of a rule."""
    return rule_changes.of_item(rule).when.on is not On.DUE


def ask(tenant: TenantContext, rule: RuleItem, *, by: Actor) -> None:
    """Ask for a rehearsal of a rule in this version, which takes the place of the last one.

    Raises Invalid for a rule of deadlines, which no history tells of, and Conflict while another rehearsal of the desk
    is running.
    """
    if not can_rehearse(rule):
        raise Invalid(_(NO_HISTORY))
    item = REHEARSALS.new(
        tenant,
        state=RUNNING,
        phase=LISTING,
        rule_id=rule.rule_id,
        rule_version=int(rule.version),
        by_id=tenant.user_id,
        since=since(),
        begun_at=clock.stamp(),
    )
    transaction = Transaction()
    transaction.put(item, condition=REHEARSALS.free())
    _commit(tenant, transaction, AuditAction.RULE_REHEARSED, by, rule, _(_BUSY))


def cancel(tenant: TenantContext, rule: RuleItem, *, by: Actor) -> None:
    """End a rule's rehearsal with what it has found. Raises Conflict where none is running."""
    item = last(tenant)
    ended = _("This rehearsal has ended already.")
    if item is None or item.rule_id != rule.rule_id or item.state != RUNNING:
        raise Conflict(ended)
    transaction = Transaction()
    still = (RehearsalItem.state == RUNNING) & (RehearsalItem.begun_at == item.begun_at)
    transaction.update(REHEARSALS.of(tenant.tenant_id), [RehearsalItem.state.set(CANCELLING)], condition=still)
    _commit(tenant, transaction, AuditAction.REHEARSAL_CANCELLED, by, rule, ended)


def _commit(
    tenant: TenantContext, transaction: Transaction, action: AuditAction, by: Actor, rule: RuleItem, refused: str
) -> None:
    member_changes.require_role(transaction, tenant)
    entry = AuditEntry(tenant.tenant_id, action, by, "rule", rule.rule_id, rule.name)
    recording.commit(transaction, [entry], refused=Conflict(refused))


def last(tenant: TenantContext) -> RehearsalItem | None:
    """Return the desk's last rehearsal, None where it never had one: one consistent read."""
    return REHEARSALS.last(tenant.tenant_id)


# --- findings ---


@dataclass(frozen=True)
class RuleFinding:
    """The effect that a rule would have had at one event of a ticket, as stored: without values that people typed."""

    number: int
    at: str
    on: On
    changes: tuple[FieldChange, ...] = ()
    answer: str = ""
    webhook: str = ""
    mail_to: str = ""
    refused: str = ""
    circle: tuple[str, ...] = ()

    @classmethod
    def of(cls, number: int, would: WouldDo) -> RuleFinding:
        plan = would.plan
        changes = tuple((name, "" if name.startswith(CUSTOM_PREFIX) else old, new) for name, old, new in plan.changes)
        return cls(
            number, would.at, would.on, changes, plan.answer, plan.webhook, plan.mail_to, plan.refused, would.circle
        )

    @classmethod
    def load(cls, told: Sequence[Any]) -> RuleFinding:
        """Return the finding that `dump` made this of."""
        number, at, on, changes, answer, webhook, mail_to, refused, circle = told
        changed = tuple(map(tuple, changes))
        return cls(number, at, On(on), changed, answer, webhook, mail_to, refused, tuple(circle))

    def dump(self) -> list[Any]:
        return [*astuple(self)]


def put_part(tenant: TenantContext, plan: str, number: int, content: Iterable[Any]) -> None:
    """Store a part of a rehearsal: one write."""
    pk, expires_at = tenant.repository.key(stored.rehearsals), int(time.time()) + KEPT_SECONDS
    text = json.dumps([*content], ensure_ascii=False, separators=(",", ":"))
    sort = stored.rehearsal_part(plan, number)
    tenant.repository.put(RehearsalPartItem(pk, sort, content=text, expires_at=expires_at))


def numbers(tenant: TenantContext, plan: str) -> list[int]:
    """Return the tickets that a rehearsal goes through: one consistent read. Raises Conflict where they are gone."""
    sort = stored.rehearsal_part(plan, 0)
    found = tenant.repository.get(RehearsalPartItem, stored.rehearsals, sort=sort, consistent=True)
    if found is None:
        raise Conflict(_("The list of this rehearsal is gone. Ask for it again."))
    return [int(number) for number in json.loads(found.content)]


def findings(tenant: TenantContext, item: RehearsalItem, *, first: int = 1) -> tuple[list[RuleFinding], int]:
    """Return what was found in up to SHOWN parts, from a part on, and the part after these, 0 for none: one Query."""
    if not item.plan:
        return [], 0
    between = (stored.rehearsal_part(item.plan, first), stored.rehearsal_part(item.plan, 999_999))
    found = tenant.repository.query(RehearsalPartItem, stored.rehearsals, between=between, limit=SHOWN)
    told = [RuleFinding.load(one) for part in found.items for one in json.loads(part.content)]
    more = stored.rehearsal_part_number(found.items[-1].sk) + 1 if found.last_key and found.items else 0
    return told, more
