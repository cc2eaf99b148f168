"""Sign the links by which somebody stops mail without signing in: about one ticket, or of one kind.

A link holds desk, person, and what it mutes. It can do nothing else, and does not expire: mail is kept for years. The
page that it leads to changes nothing until its button is pressed, since mail scanners open links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from django.core import signing

from portal.schema import keys
from tenants.membership.mail_choices import MailedReport, MailKind

_SALT: Final = "tickets.notices.mute"
# No MailKind has these values, and mails that were sent have them.
_REPORTS: Final = {report.value.replace("_", " "): report for report in MailedReport}


@dataclass(frozen=True)
class MuteLink:
    """Say what a link mutes for a person: the ticket of this `number`, this `kind` of mail, or a report."""

    tenant_id: str
    user_id: str
    number: int = 0
    kind: MailKind | None = None
    report: MailedReport | None = None

    @property
    def token(self) -> str:
        """Return it signed, for an address."""
        report = next((text for text, report in _REPORTS.items() if report is self.report), None)
        what = report or (self.kind.value if self.kind else self.number)
        return signing.dumps([self.tenant_id, self.user_id, what], salt=_SALT)

    @classmethod
    def read(cls, token: str) -> Self | None:
        """Return what `token` gave; None for anything else, such as a link that a mail program has cut."""
        try:
            tenant_id, user_id, what = signing.loads(token, salt=_SALT)
            if isinstance(what, int):
                return cls(keys.tenant(tenant_id), user_id, number=what)
            if what in _REPORTS:
                return cls(keys.tenant(tenant_id), user_id, report=_REPORTS[what])
            return cls(keys.tenant(tenant_id), user_id, kind=MailKind(what))
        except (signing.BadSignature, ValueError):
            return None
