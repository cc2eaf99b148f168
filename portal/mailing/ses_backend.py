"""Send mail by Amazon SES: Django's mail backend for EMAIL_URL=ses://<region>.

One request for each mail, with the very bytes that SMTP would carry. SES sends it from a return address of its own, and
tells itself what came back. A mail may have `tags`, a mapping, which SES hands
back with a bounce: their names and values hold letters, digits, - and _. EMAIL_URL may name a configuration set, by
which SES tells what bounced: ses://eu-central-1?configuration_set=pooldesk-mail.

SES is also asked about a domain that mail is to be sent from. Its identity belongs to the account of this installation
and not to one desk: who may send from it is decided elsewhere.

Sources: AWS, "Amazon SES API v2": SendEmail (errors, raw content), CreateEmailIdentity, GetEmailIdentity; "Sending
email tags"; "Easy DKIM".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.message import sanitize_address

from portal import aws_session
from portal.errors import PortalError, Rejected, Throttled, Unavailable

_ATTEMPTS: Final = 2
_SECONDS: Final = 10  # of one attempt
_THROTTLES: Final = {"TooManyRequestsException", "LimitExceededException", "Throttling", "ThrottlingException"}
# Of this mail and no other: it would be refused again.
_OF_THE_MAIL: Final = {"MessageRejected", "BadRequestException"}
_NOT_SET_UP: Final = "not verified"  # in a rejection of whom we send as, which somebody will mend


class SesEmailBackend(BaseEmailBackend):
    """Send each mail by one request. Raises Throttled, Unavailable, and Rejected where SES will never take it."""

    def send_messages(self, messages: Sequence[EmailMessage]) -> int:
        sent = 0
        for message in messages:
            try:
                _send(message)
            except PortalError:
                if not self.fail_silently:
                    raise
            else:
                sent += 1
        return sent


def _send(message: EmailMessage) -> None:
    tags = getattr(message, "tags", {})
    mime: Any = message.message()  # Django's, whose line endings can be chosen
    encoding = message.encoding or settings.DEFAULT_CHARSET
    request: dict[str, Any] = {
        "FromEmailAddress": sanitize_address(message.extra_headers.get("From", message.from_email), encoding),
        "Destination": {"ToAddresses": [sanitize_address(address, encoding) for address in message.recipients()]},
        "Content": {"Raw": {"Data": mime.as_bytes(linesep="\r\n")}},
        "EmailTags": [{"Name": name, "Value": value} for name, value in tags.items()],
    }
    if settings.SES_CONFIGURATION_SET:
        request["ConfigurationSetName"] = settings.SES_CONFIGURATION_SET
    try:
        answer = client().send_email(**request)
    except (BotoCoreError, ClientError) as error:
        raise translated(error) from error
    message.carrier_id = answer.get("MessageId", "")  # type: ignore[attr-defined]  # SES sends it as the Message-ID


def translated(error: Exception) -> PortalError:
    """Return the error of ours that stands for one of SES: Rejected where the mail itself is at fault."""
    if not isinstance(error, ClientError):
        return Unavailable("Amazon SES cannot be reached.")
    code, text = (error.response.get("Error", {}).get(part, "") for part in ("Code", "Message"))
    if code in _THROTTLES:
        return Throttled(f"Amazon SES takes no more at the moment: {code}.")
    if code in _OF_THE_MAIL and _NOT_SET_UP not in text:
        return Rejected(f"Amazon SES refused it: {text}")
    return Unavailable(f"Amazon SES cannot send at the moment: {code}.")


def client() -> Any:
    """Return the client of Amazon SES, with limits on the time that a request takes."""
    retries = {"mode": "standard", "total_max_attempts": _ATTEMPTS}
    return aws_session.client(
        "sesv2", settings.EMAIL_HOST, connect_timeout=_SECONDS, read_timeout=_SECONDS, retries=retries
    )


# --- domains that mail is to be sent from ---


@dataclass(frozen=True)
class SendingIdentity:
    """The identity of a domain at SES: the tokens of its DKIM records, and whether mail may be sent from it."""

    tokens: tuple[str, ...]
    is_verified: bool


def is_used() -> bool:
    """Tell whether this installation sends by Amazon SES."""
    return settings.MAIL_TRANSPORT == "portal.mailing.ses_backend.SesEmailBackend"


def identity(domain: str) -> SendingIdentity:
    """Return the identity of a domain, made where there is none. Raises Throttled, Unavailable and Rejected."""
    ses = client()
    try:
        try:
            told = ses.get_email_identity(EmailIdentity=domain)
        except ses.exceptions.NotFoundException:
            ses.create_email_identity(EmailIdentity=domain)
            told = ses.get_email_identity(EmailIdentity=domain)
    except (BotoCoreError, ClientError) as error:
        raise translated(error) from error
    dkim: dict[str, Any] = told.get("DkimAttributes", {})
    return SendingIdentity(tuple(dkim.get("Tokens", ())), bool(told.get("VerifiedForSendingStatus")))
