"""Write the comment of a rule's run, and send its mail: destinations of their own, which follow from the run.

Both read the rule in the version that ran. The comment is noted in the run by its own transaction, so it is written
once, whoever is killed; a mail has the same id each time, by which mail servers know it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from delivery.mail import mail_delivering
from delivery.mail.outbox_backend import MailContent
from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid, NotFound, TransactionRefused
from portal.schema import keys
from tenants.membership import members
from tenants.membership.members import Member
from tenants.tenancy.context import TenantContext
from tickets.desk import changing, commenting
from tickets.notices import telling
from tickets.ready_answers import answer_reading, filling
from tickets.ready_answers.answer_uses import Uses
from tickets.rules import rule_changes, stored
from tickets.rules.definition import ASSIGNEE_WORD, Rule
from tickets.rules.stored import RunItem
from tickets.ticket.causes import Cause
from tickets.ticket.stored import ActivityItem, SummaryItem

_RUN: Final = "run"
_OVER: Final = Outcome("answered", note="There is nothing to do any more.")


@dataclass(frozen=True)
class RuleMail:
    """A mail of a rule as it is to be written."""

    tenant: TenantContext
    person: Member
    summary: SummaryItem
    rule: Rule
    text: str


class _AnsweredBefore(Conflict):
    """The comment of this run was written before."""


@dataclass(frozen=True)
class _Answered:
    """Note the comment in its run, in the same transaction: a `Companion`."""

    tenant: TenantContext
    run: RunItem

    def meanwhile(self) -> None:
        """Do nothing beside the reads of the comment."""

    def join(self, transaction: Transaction, told: ActivityItem) -> None:
        is_open = RunItem.pk.exists() & (RunItem.answer == "")
        transaction.update(self.run, [RunItem.answer.set(told.sk)], name=_RUN, condition=is_open)

    def blame(self, refused: TransactionRefused) -> None:
        if _RUN in refused.names and refused.reason(_RUN):
            raise _AnsweredBefore("This was answered before.") from refused


def answer(work: Work) -> Outcome:
    """Write the comment of a run. Raises what the database raises; it is then done again.

    Costs a read of the desk, one of the rule's version, of the run, of the ticket and of the answer, and the comment.
    """
    found = _of_work(work)
    if found is None:
        return _OVER
    tenant, rule, run = found
    acting = replace(tenant, user_name=tenant.name, cause=run.cause)
    try:
        item = answer_reading.read(acting, rule.then.answer)
        summary = changing.read(acting, int(run.number))
        body = filling.filled(acting, summary, item.body, is_unseen=True)
        companion = Uses(acting, [item.answer_id], beside=_Answered(acting, run))
        # The beginning of its id is part of the entry's key: unlike that of other runs.
        once = keys.digest(run.sk)
        commenting.comment(acting, int(run.number), body=body, request_id=once, companion=companion)
    except _AnsweredBefore:
        return _OVER
    except commenting.CommentNotAdded:
        raise
    except (NotFound, Invalid, Conflict) as error:
        return Outcome("answered", note=error.message)
    return Outcome("answered", note="The comment was written.")


def mail(work: Work, *, write: Callable[[RuleMail], MailContent]) -> Outcome:
    """Send the mail of a run. Raises what the database raises; it is then done again.

    Costs a read of the desk, one of the rule's version, of the run, of the ticket and of the member.
    """
    found = _of_work(work)
    if found is None:
        return _OVER
    tenant, rule, run = found
    try:
        summary = changing.read(tenant, int(run.number))
    except NotFound:
        return _OVER
    to = summary.resolver if rule.then.mail_to == ASSIGNEE_WORD else rule.then.mail_to
    for person in members.members_with(tenant.repository, [to]) if to else []:
        text = filling.filled(replace(tenant, user_name=tenant.name), summary, rule.then.mail_text, is_plain=True)
        return mail_delivering.carry(work, write(RuleMail(tenant, person, summary, rule, text)))
    return _OVER


def _of_work(work: Work) -> tuple[TenantContext, Rule, RunItem] | None:
    """Return the desk, the rule in the version that ran, and the run, None where one of them is gone."""
    cause, tenant = Cause.parse(work.row.cause), telling.desk_at_work(work.tenant_id)
    if tenant is None or cause is None:
        return None
    number: Any = json.loads(work.row.events[work.index])["data"]["number"]
    try:
        rule = rule_changes.of_item(rule_changes.find_version(tenant, cause.rule_id, cause.version))
        run_id = cause.run_id(int(number))
        run = tenant.repository.get(RunItem, stored.runs, sort=stored.run(cause.rule_id, run_id), consistent=True)
    except NotFound:
        return None
    return (tenant, rule, run) if run is not None else None
