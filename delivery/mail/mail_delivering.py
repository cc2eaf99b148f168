"""Carry one mail: ask whether its address is known not to be reached, hand it over, and say how it goes on.

A mail that its carrier could not take now is tried again at the times of all deliveries, as long as it is worth
sending. One that is refused for good is dead at once. The result is recorded at the invitation that the mail carries;
if nobody has the address, no more mail is sent to it.
"""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import Final

from django.core.mail import EmailMessage

from delivery.mail import bounces
from delivery.mail.outbox_backend import MailContent
from delivery.outbox import destinations, publisher
from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from portal import clock, logs
from portal.load import spending
from portal.mailing import mail_transport
from portal.mailing.mail_transport import HandOver
from tenants.sign_in import suppressed_addresses
from tenants.sign_in.stored import BOUNCED

log = logging.getLogger("pooldesk.mail")

NOT_KEPT: Final = "What it said is not kept after it was sent or given up. Send it anew from where it came."
TOO_LATE: Final = "It could not be sent while it was still of use."
_TAG: Final = re.compile(r"[^A-Za-z0-9_-]")


def deliver(work: Work) -> Outcome:
    """Send a mail. Raises what the database raises; the delivery is then made again.

    Costs one BatchGetItem, and writes only where the mail does not get through.
    """
    if not work.row.private:
        return Outcome("dead", note=NOT_KEPT)
    return carry(work, MailContent.read(work.row.private))


def carry(work: Work, mail: MailContent) -> Outcome:
    """Send this mail for a delivery, and say how that goes on. Raises and costs what `deliver` does."""
    if mail.worth_until and mail.worth_until <= clock.stamp():
        return _dead(work, TOO_LATE)
    suppressed = suppressed_addresses.read_by_worker(mail.recipients)
    mail = mail.without(suppressed)
    if not mail.recipients:
        note = next(iter(suppressed.values())).sentence
        log.warning("A mail was not sent: tenant %s, %s", work.tenant_id, work.row.subject)
        bounces.note_undelivered(work.tenant_id, work.row.subject, why=note, sent_at=work.row.timestamp)
        return Outcome("answered", note=note)
    handed = mail_transport.hand_over(_message(work, mail))
    for address in handed.nobody_there:
        suppressed_addresses.note(address, kind=BOUNCED, why=handed.note)
    if handed.state == "taken":
        spending.count(work.tenant_id, mails=len(mail.recipients))
        return Outcome("answered", note=handed.note)
    return _dead(work, handed.note) if handed.state == "refused" else _later(work, mail, handed)


def _message(work: Work, mail: MailContent) -> EmailMessage:
    tags = {"tenant": work.tenant_id, "about": _TAG.sub("_", work.row.subject) or "mail"}
    message = mail.message(message_id=publisher.delivery_id(work.row, work.index), tags=tags)
    if work.row.request:
        message.extra_headers[logs.HEADER] = work.row.request
    return message


def _later(work: Work, mail: MailContent, handed: HandOver) -> Outcome:
    pause = destinations.retry_pause(work.attempt)
    if pause is None:
        return _dead(work, handed.note)
    seconds = pause.total_seconds()
    if mail.worth_until and mail.worth_until <= clock.stamp(clock.now() + timedelta(seconds=seconds)):
        return _dead(work, f"{TOO_LATE} {handed.note}")
    return Outcome("failed", seconds, handed.note)


def _dead(work: Work, note: str) -> Outcome:
    bounces.note_undelivered(work.tenant_id, work.row.subject, why=note, sent_at=work.row.timestamp)
    return Outcome("dead", note=note)
