"""Hand one mail to who carries it, and say what came of it in words that do not depend on who that is.

Taken: the carrier has it. Later: it was not the mail's fault, and the same may go out another time. Refused: the same
mail would be refused again.

Sources: RFC 5321, 4.2 (reply codes: 4yz passes, 5yz stays), RFC 3463 (enhanced status codes).
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from email.utils import parseaddr
from smtplib import (
    SMTPAuthenticationError,
    SMTPDataError,
    SMTPException,
    SMTPNotSupportedError,
    SMTPRecipientsRefused,
    SMTPResponseException,
)
from typing import Final, Literal

from django.conf import settings
from django.core import mail
from django.core.mail import EmailMessage

from portal.errors import Rejected, Throttled, Unavailable

log = logging.getLogger("pooldesk.mail")

NOTE_LIMIT: Final = 300  # characters of what a carrier said
# No such mailbox, no such domain, malformed, moved, takes no mail; and a mailbox that is disabled. Others of class 5,
# a full mailbox or a policy, do not say that nobody is there.
_NOBODY_THERE: Final = re.compile(r"\b5\.(?:1\.(?:1|2|3|6|10)|2\.1)\b")
_ENHANCED: Final = re.compile(r"\b[245]\.\d{1,3}\.\d{1,3}\b")
_IN_WORDS: Final = re.compile(r"user unknown|unknown user|no such (?:user|mailbox|recipient)|does not exist", re.I)
_LINK: Final = re.compile(r"https?:\S+", re.I)


@dataclass(frozen=True)
class HandOver:
    """Say what came of it. `note` is a sentence; `nobody_there` the addresses that are nobody's. `carrier_id` is the
    Message-ID that the carrier gave the mail in place of its own, without its domain, "" where it kept that."""

    state: Literal["taken", "later", "refused"]
    note: str
    nobody_there: tuple[str, ...] = ()
    carrier_id: str = ""


def hand_over(message: EmailMessage) -> HandOver:
    """Send one mail now, by EMAIL_URL. Raises nothing that the carrier is the cause of."""
    try:
        mail.get_connection(settings.MAIL_TRANSPORT).send_messages([message])
    except SMTPRecipientsRefused as error:
        return _recipients(error)
    except SMTPDataError as error:
        state: Literal["later", "refused"] = "refused" if error.smtp_code >= 500 else "later"
        return HandOver(state, said(error.smtp_code, error.smtp_error))
    except (SMTPNotSupportedError, Rejected, UnicodeError, ValueError) as error:
        return HandOver("refused", _sentence(str(error) or type(error).__name__))
    except SMTPAuthenticationError as error:
        log.error("The mail server does not let us in: it answered %s", error.smtp_code)
        return HandOver("later", "The mail server does not let us in.")
    except SMTPResponseException as error:  # to us, or whom we send as: that is ours to mend, and not the mail's fault
        return HandOver("later", said(error.smtp_code, error.smtp_error))
    except (SMTPException, OSError) as error:
        return HandOver("later", _sentence(f"The mail server could not take it: {error}"))
    except (Throttled, Unavailable) as error:
        return HandOver("later", error.message)
    return HandOver("taken", "Handed to the mail server.", carrier_id=getattr(message, "carrier_id", ""))


def said(code: int, answer: bytes | str) -> str:
    """Return a mail server's answer as a sentence for people. Links are cut out: it may quote those of the mail."""
    text = answer.decode("ascii", "replace") if isinstance(answer, bytes) else answer
    return _sentence(f"The mail server answered {code} {text}")


def is_nobody_there(code: int, answer: bytes | str) -> bool:
    """Tell whether a mail server's answer about a recipient says that nobody has this address, and will not.

    An answer without an enhanced status must say so in words: 550 alone may be a policy about us.
    """
    text = answer.decode("ascii", "replace") if isinstance(answer, bytes) else answer
    if code < 500:
        return False
    return bool((_NOBODY_THERE if _ENHANCED.search(text) else _IN_WORDS).search(text))


def _recipients(error: SMTPRecipientsRefused) -> HandOver:
    answers = error.recipients
    nobody = tuple(parseaddr(address)[1] for address, answer in answers.items() if is_nobody_there(*answer))
    first = said(*next(iter(answers.values())))
    if any(code < 500 for code, _ in answers.values()):
        return HandOver("later", first, nobody)
    return HandOver("refused", first, nobody)


def _sentence(text: str) -> str:
    return " ".join(_LINK.sub("(link)", text).split())[:NOTE_LIMIT]
