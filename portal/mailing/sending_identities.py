"""Ask Amazon SES about a domain that mail is to be sent from: the DKIM records it wants, and whether it has found them.

The identity belongs to the account of this installation and not to one desk: who may send from it is decided elsewhere.

Source: AWS, "Amazon SES API v2": CreateEmailIdentity, GetEmailIdentity; "Easy DKIM".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings

from portal.mailing import ses_backend


@dataclass(frozen=True)
class SendingIdentity:
    """The identity of a domain at SES: the tokens of its DKIM records, and whether mail may be sent from it."""

    tokens: tuple[str, ...]
    is_verified: bool


def is_asked() -> bool:
    """Tell whether this installation sends by Amazon SES."""
    return settings.MAIL_TRANSPORT == "portal.mailing.ses_backend.SesEmailBackend"


def identity(domain: str) -> SendingIdentity:
    """Return the identity of a domain, made where there is none. Raises Throttled, Unavailable and Rejected."""
    client = ses_backend.client()
    try:
        try:
            told = client.get_email_identity(EmailIdentity=domain)
        except client.exceptions.NotFoundException:
            client.create_email_identity(EmailIdentity=domain)
            told = client.get_email_identity(EmailIdentity=domain)
    except (BotoCoreError, ClientError) as error:
        raise ses_backend.translated(error) from error
    dkim: dict[str, Any] = told.get("DkimAttributes", {})
    return SendingIdentity(tuple(dkim.get("Tokens", ())), bool(told.get("VerifiedForSendingStatus")))
