from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy

from portal.apps import RoomsConfig

if TYPE_CHECKING:
    from datetime import datetime

    from delivery.mail.bounces import Feedback
    from delivery.outbox.destinations import Outcome
    from delivery.outbox.outbox_rows import Work
    from delivery.queues.direct_work import DirectWork
    from tenants.tenancy.context import TenantContext


class TicketsConfig(RoomsConfig):
    name = "tickets"

    def ready(self) -> None:
        super().ready()
        from django.conf import settings

        from delivery.mail import bounces
        from delivery.outbox import destinations
        from delivery.queues import direct_work, queue_readers
        from tenants.lifecycle import desk_settings
        from tenants.tenancy import context
        from tickets.desk_export import export_job, export_mails
        from tickets.desk_setup import setup
        from tickets.desk_setup.stored import SETUP, SetupItem
        from tickets.letters.stored import HELD_WORK, LETTERS_QUEUE, WORK
        from tickets.replies import withdrawing
        from tickets.replies.stored import WAITING, WaitingCountItem
        from tickets.ticket import fields, ticket_events

        _declare_timers()
        _declare_reports()
        queue_readers.declare_reader(LETTERS_QUEUE, _take_letter, pace=_pace_of_letter)
        direct_work.declare_kind(WORK, direct_work.Kind(_file_letter, _give_letter_up))
        direct_work.declare_kind(HELD_WORK, direct_work.Kind(_file_held_letter, _leave_letter_held))
        export_job.tell_with(export_mails.ready)
        destinations.declare_destination(ticket_events.REPLY, _to_requester)
        destinations.declare_destination(ticket_events.NOTICE, _to_members)
        destinations.declare_destination(ticket_events.PREVIEW, _to_previews)
        destinations.declare_destination(ticket_events.DIGEST, _to_member)
        destinations.declare_destination(context.RULES, _to_rules)
        destinations.declare_destination(ticket_events.RULE_ANSWER, _answer_of_rule)
        destinations.declare_destination(ticket_events.RULE_MAIL, _mail_of_rule)
        context.declare_item("letters", WaitingCountItem, WAITING)
        context.declare_item(setup.NAME, SetupItem, SETUP)
        bounces.declare_feedback(f"{ticket_events.REPLY}_", _of_letter)
        desk_settings.declare_default(
            desk_settings.Default(
                name=withdrawing.HOLD,
                label=gettext_lazy("Hold comments before they leave"),
                choices=tuple((one, _seconds(one)) for one in withdrawing.CHOICES),
                initial=str(settings.REPLY_HOLD_SECONDS),
            )
        )
        desk_settings.declare_default(
            desk_settings.Default(
                name="ticket_priority",
                label=gettext_lazy("Priority of a new ticket"),
                choices=tuple((p.value, gettext_lazy(p.value.capitalize())) for p in fields.Priority),
                initial=fields.Priority.NORMAL.value,
            )
        )


def _seconds(count: str) -> Any:
    # A lazy text with % would be translated here, once and for all.
    return format_lazy(gettext_lazy("{num} seconds"), num=count) if count != "0" else gettext_lazy("Not at all")


def _to_requester(work: Work) -> Outcome:
    """Deliver a letter. The modules are loaded with the first one: most processes send none."""
    from tickets.outside import looks
    from tickets.replies import reply_delivering, reply_mails

    writers = reply_delivering.Writers(
        reply_mails.answer,
        reply_mails.acknowledgement,
        reply_mails.link_letter,
        language=lambda desk: looks.looks_of(desk).language,
    )
    return reply_delivering.deliver(work, writers=writers)


def _to_members(work: Work) -> Outcome:
    """Decide which members an event concerns."""
    from tickets.notices import telling

    return telling.deliver(work)


def _to_previews(work: Work) -> Outcome:
    """Make the previews of an entry's files."""
    from tickets.attachments import previews

    return previews.deliver(work)


def _to_member(work: Work) -> Outcome:
    """Send a member's mail."""
    from tickets.notices import digest, notice_mails

    return digest.deliver(work, write=notice_mails.digest)


def _to_rules(work: Work) -> Outcome:
    """Carry out the rules that are for an event."""
    from tickets.rules import engine

    return engine.deliver(work)


def _answer_of_rule(work: Work) -> Outcome:
    from tickets.rules import answering

    return answering.answer(work)


def _mail_of_rule(work: Work) -> Outcome:
    from tickets.rules import answering, presenters

    return answering.mail(work, write=presenters.mail)


def _tell_of_clocks(tenant: TenantContext, entity: str, version: str, at: datetime) -> None:
    from tickets.sla import tracking

    tracking.tell(tenant, entity, version, at)


def _of_letter(feedback: Feedback) -> None:
    """Note what a carrier says of a letter that it took."""
    from tickets.replies import delivery_states

    delivery_states.take(feedback)


def _declare_reports() -> None:
    """Say who writes the page of an isolation run, and that runs are evidence for auditors."""
    from tenants.auditing import audit_export
    from tickets.isolation_runs import presenters, run_job, run_requests

    run_job.write_with(presenters.signed)
    audit_export.declare_evidence(run_requests.evidence)


def _declare_timers() -> None:
    """Say who does the work of which kind in the due index."""
    from delivery.timers import due

    due.handler("snooze")(_wake_snoozed)
    due.handler("sla")(_tell_of_clocks)
    due.handler("report")(_mail_report)


def _mail_report(tenant: TenantContext, entity: str, version: str, at: datetime) -> None:
    """Mail the report of a week or a month to those who want it."""
    from tickets.reports import mailing, report_mails

    mailing.come_due(tenant, entity, version, read=report_mails.READ)


def _wake_snoozed(tenant: TenantContext, entity: str, version: str, due_at: datetime) -> None:
    from tickets.snoozing import snoozing

    snoozing.come_due(tenant, entity, version, due_at)


# Letters are read by few processes; the rest do not load what reads them.


def _take_letter(notification: str) -> None:
    from tickets.letters import arrival

    arrival.take(notification)


def _pace_of_letter(notification: str) -> float:
    from tickets.letters import arrival

    return arrival.pace(notification)


def _file_letter(work: DirectWork) -> None:
    from tickets.letters import filing

    filing.do(work)


def _file_held_letter(work: DirectWork) -> None:
    from tickets.letters import filing

    filing.do_held(work)


def _leave_letter_held(work: DirectWork, reason: str) -> None:
    """Leave a letter where it waits: its button is still there."""


def _give_letter_up(work: DirectWork, reason: str) -> None:
    from tickets.letters import filing

    filing.give_up(work, reason)
