"""Say what the page of a desk's mail shows of its sending domain."""

from __future__ import annotations

from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.web.locales import stored_text
from tenants.tenancy.context import TenantContext
from tickets.replies import own_domain
from tickets.replies.mail_settings import MailSettings
from tickets.replies.own_domain import MISSING, OK, WARNING

_BADGES: Final = {
    OK: (gettext_noop("Found"), "answered"),
    MISSING: (gettext_noop("Missing"), "dead"),
    WARNING: (gettext_noop("Look at this"), "failed"),
}


def domain(tenant: TenantContext, settings: MailSettings) -> dict[str, Any] | None:
    """Return the records that the desk's own domain needs and what the last check found; None without a domain."""
    if not settings.domain:
        return None
    told = settings.findings
    return {
        "name": settings.domain,
        "sender": settings.domain_sender,
        "is_proved": bool(settings.domain_proved_at),
        "checked_at": clock.parse(settings.domain_checked_at) if settings.domain_checked_at else None,
        "records": [
            {"kind": one.kind, "host": one.host, "value": one.value, "why": one.why, "is_needed": one.is_needed}
            | _finding(told.get(one.name, ""))
            for one in own_domain.records(tenant, settings)
        ],
        "others": [_finding(told[name]) | {"name": label} for name, label in _OTHERS.items() if name in told],
        "unchecked": own_domain.unchecked(),
    }


_OTHERS: Final = {"ses": "Amazon SES", "spf": "SPF", "dmarc": "DMARC"}


def _finding(text: str) -> dict[str, Any]:
    state, _space, sentence = text.partition(" ")
    label, kind = _BADGES.get(state, (gettext_noop("Not checked yet"), ""))
    return {"state": _(label), "badge": kind, "finding": stored_text(sentence)}
