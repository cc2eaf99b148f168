"""Form the keys of accounts and of the counters that slow down guessing."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

AMBIGUOUS: Final = (
    "This address has a letter, such as \u00df, that would make it another address in lower case. "
    "Write the domain in its xn-- form, or use another address."
)
_SUPPRESSED: Final = "SUPPRESSED"
ANY_SUPPRESSED: Final = keys.beginning(_SUPPRESSED) + "*"  # the pattern, for a policy, of all suppressed addresses


def user(user_id: str) -> str:
    """Return the partition key of an account in Platform.Users."""
    if not isinstance(user_id, str) or not keys.USER_ID.match(user_id):
        raise ValueError("a user id is 32 lower-case hex digits")
    return keys.labelled("USER", user_id)


def folded(address: str) -> str:
    """Return an e-mail address as it is stored and compared: without surrounding space, in lower case.

    Raises ValueError, with a sentence for people, for none, and for one with a letter that comparing turns into others:
    x@fa\N{LATIN SMALL LETTER SHARP S}.de and x@fass.de are two mailboxes.
    """
    text = address.strip()
    is_text = not any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in text)
    if not text or not is_text or len(text.encode()) > 320:
        raise ValueError("That is not an e-mail address.")
    if text.casefold() != text.lower():
        raise ValueError(AMBIGUOUS)
    return text.casefold()


def email(address: str) -> str:
    """Return the partition key of the item that makes an address unique. The address is folded to lower case."""
    return keys.labelled("EMAIL", folded(address))


def suppressed(address: str) -> str:
    """Return the partition key of an address that mail does not reach. The address is hashed: whoever has it finds what
    is known of it, and the table makes no list of people. Raises ValueError for what is no address."""
    return keys.joined(_SUPPRESSED, keys.anonymous(folded(address)))


def throttle(kind: str, subject: str, window: int) -> str:
    """Return the partition key of a counter of attempts: `kind` says what the subject is, `window` is a number of a
    time slot.

    The subject is hashed: the table then holds no addresses, and any length and character is safe.
    """
    return keys.joined(kind, keys.anonymous(subject), keys.whole_number(window, "a window"))
