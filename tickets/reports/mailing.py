"""Mail reports to those who want them, on the first morning after a week or a month.

The work of a row of the due index. Each person's mail is written together with the note of the turn for which it is:
doing the work again sends nobody a second one. report_mails.py writes the mails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Final

from portal.dynamo.store import Condition, Transaction
from portal.errors import TransactionRefused
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from tenants.membership import members
from tenants.membership.mail_choices import MailedReport
from tenants.membership.members import Member
from tenants.tenancy.context import TenantContext
from tickets.notices import report_turns, stored
from tickets.notices.report_turns import ReportTurn

_TOLD: Final = "told"

Write = Callable[[Member], OutgoingMail]
Read = Callable[[TenantContext, date], Write]  # reads a report once, and returns what writes it to each person


def come_due(tenant: TenantContext, entity: str, version: str, *, read: Mapping[MailedReport, Read]) -> None:
    """Send the report of the period before this first day to those who want it, and wait for the next turn.

    Waits no longer where nobody has chosen it. Costs what reading the report does, a Query of the members, and for each
    mail a transaction of two items.
    """
    turn, first = report_turns.of_entity(entity), date.fromisoformat(version)
    if turn is None:
        return
    people = members.members_of(tenant.repository, consistent=True)
    choosing = [one for one in people if turn.report in one.choices.reports]
    if not choosing:
        return
    report_turns.wait(
        tenant, turn
    )  # also of a suspended desk, and for those whose role is too low now: the choice stands
    wanting = [one for one in choosing if one.role.at_least(turn.role)]
    # The day has not come yet where the desk has moved to a zone further west: what waits now waits for it there.
    if not wanting or tenant.suspended or not first <= tenant.today <= first + turn.latest:
        return
    write = read[turn.report](tenant, first)
    for person in wanting:
        _send(tenant, person, write(person), turn, first)


def _send(tenant: TenantContext, person: Member, mail: OutgoingMail, turn: ReportTurn, first: date) -> None:
    transaction, item, noted = Transaction(), stored.of_member(tenant.tenant_id, person.id), turn.noted
    is_new: Condition = noted.does_not_exist() | (noted < first.isoformat())
    transaction.update(item, [noted.set(first.isoformat())], name=_TOLD, condition=is_new)
    left = outgoing.join(transaction, [mail])
    try:
        tenant.repository.transact(transaction)
    except TransactionRefused as refused:
        if refused.reason(_TOLD) is None:
            raise
        return
    outgoing.send_all(left)
