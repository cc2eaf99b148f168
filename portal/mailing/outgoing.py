"""Say of a mail what its way needs to know: whose it is, until when it is worth sending, what it is about.

Which way it takes is the mail backend's, EMAIL_BACKEND: one that carries it at once, or one that writes it down, in the
transaction of the change that it tells of, and lets others carry it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.core import mail
from django.core.mail import EmailMultiAlternatives

from portal import logs
from portal.dynamo.transaction import Transaction
from portal.schema import keys

log = logging.getLogger("pooldesk.mail")


class OutgoingMail(EmailMultiAlternatives):
    """A mail to one person.

    `kind` names it ("invitation"), `about` what it is about, without an address of a person ("invitation/<id>").
    `tenant_id` is whose it is, PLATFORM for nobody's, and `queues` that tenant's. After `worth_until` nobody sends it;
    None leaves that to how often it is tried. A `decoy` costs the same and reaches nobody.
    """

    def __init__(
        self,
        *,
        to: str,
        subject: str,
        text: str,
        html: str = "",
        kind: str,
        about: str,
        tenant_id: str = keys.PLATFORM,
        queues: Sequence[int] = (),
        worth_until: datetime | None = None,
        decoy: bool = False,
    ) -> None:
        super().__init__(subject=" ".join(subject.split()), body=text, to=[to])
        if html:
            self.attach_alternative(html, "text/html")
        if caused := logs.request_id():
            self.extra_headers[logs.HEADER] = caused
        self.kind, self.about = kind, about
        self.tenant_id, self.queues = tenant_id, tuple(queues)
        self.worth_until, self.decoy = worth_until, decoy


def leaves_at_once() -> bool:
    """Tell whether a mail that is sent goes out in this process, and so only after the change that it tells of."""
    return not hasattr(_backend(), "add_to")


def join(transaction: Transaction, mails: Sequence[OutgoingMail]) -> Sequence[OutgoingMail]:
    """Add mails to the transaction of what they tell of. Return those that are still to be sent after it: all or none.

    Raises Invalid for a mail that is too large.
    """
    backend = _backend()
    if not hasattr(backend, "add_to"):
        return mails
    for one in mails:
        backend.add_to(transaction, one)
    return ()


def send_all(mails: Iterable[OutgoingMail]) -> None:
    """Send mails one by one. A failure is logged: whoever needs to know sees elsewhere what the mail tells of."""
    for one in mails:
        try:
            one.send()
        except Exception:
            log.exception("A mail could not be sent: %s, %s", one.kind, one.about)


def _backend() -> Any:
    return mail.get_connection()
