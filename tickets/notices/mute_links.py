"""Sign the links by which somebody stops mail without signing in: about one ticket, or of one kind.

A link holds desk, person, and what it mutes. It can do nothing else, and does not expire: mail is kept for years. The
page that it leads to changes nothing until its button is pressed, since mail scanners open links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from django.core import signing

from portal.schema import keys
from tenants.membership.mail_choices import MailKind

_SALT: Final = "tickets.notices.mute"
_REPORT: Final = "weekly report"  # no MailKind has this value


@dataclass(frozen=True)
class MuteLink:
    """Say what a link mutes for a person: the ticket of this `number`, this `kind` of mail, or the weekly report."""

    tenant_id: str
    user_id: str
    number: int = 0
    kind: MailKind | None = None
    is_report: bool = False

    @property
    def token(self) -> str:
        """Return it signed, for an address."""
        what = _REPORT if self.is_report else self.kind.value if self.kind else self.number
        return signing.dumps([self.tenant_id, self.user_id, what], salt=_SALT)

    @classmethod
    def read(cls, token: str) -> Self | None:
        """Return what `token` gave; None for anything else, such as a link that a mail program has cut."""
        try:
            tenant_id, user_id, what = signing.loads(token, salt=_SALT)
            if isinstance(what, int):
                return cls(keys.tenant(tenant_id), user_id, number=what)
            if what == _REPORT:
                return cls(keys.tenant(tenant_id), user_id, is_report=True)
            return cls(keys.tenant(tenant_id), user_id, kind=MailKind(what))
        except (signing.BadSignature, ValueError):
            return None
