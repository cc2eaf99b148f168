"""Notice letters that answer each other, and senders who send too much, by the newest rows of the ledger.

Two programs that answer each other without saying that they are programs stop here: after four letters of one sender
about one thing within ten minutes, the fifth waits for a person of the desk, and nothing answers it. A flood of letters
under ever-changing names is held back as a whole; answers and letters of known people are filed meanwhile. Counting
reads the ledger and writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.store import Store
from portal.web.locales import declare_stored
from tickets.letters import ledger
from tickets.letters.stored import LedgerRow

WINDOW: Final = timedelta(minutes=10)
ABOUT_ONE_THING: Final = 4  # letters of one sender within the window; more wait
OF_ONE_SENDER: Final = 40
SENDERS: Final = 50  # different ones within the window; letters of more strangers are held back
LETTERS: Final = 100  # the same for letters of any senders
_LOOKED_AT: Final = 100  # rows of the ledger; a Query of some 10 read units at most
_MINUTES: Final = int(WINDOW.total_seconds() // 60)
_ABOUT_THIS: Final = declare_stored(
    gettext_noop("%(sender)s has sent more than %(count)s letters about this within %(minutes)s minutes.")
)
_PROGRAM: Final = gettext_noop("It may be a program that answers the desk's own letters.")
_MANY: Final = declare_stored(
    gettext_noop("%(sender)s has sent more than %(count)s letters within %(minutes)s minutes.")
)
_CROWD: Final = declare_stored(
    gettext_noop(
        "This desk has had letters of %(senders)s senders, or %(letters)s letters, within %(minutes)s minutes, "
        "and does not know this sender."
    )
)
_REPLY: Final = re.compile(r"\s*(?:re|aw|fw|fwd|wg|sv|antw|tr|rv|res|automatic reply|auto|out of office)\s*:\s*", re.I)


@dataclass(frozen=True)
class RecentLetters:
    """The newest rows of a desk's ledger, of within the window: one Query."""

    rows: Sequence[LedgerRow]

    @classmethod
    def of(cls, repository: Store) -> RecentLetters:
        return cls(ledger.since(repository, clock.stamp(clock.now() - WINDOW), most=_LOOKED_AT))

    def loop(self, *, sender: str, number: int, subject: str) -> str:
        """Return why a letter of one sender has to wait for a person, "" where it need not. `number` is that of the
        ticket that it would be filed to, 0 for a new one."""
        own = [row for row in self.rows if row.sender == sender]
        about = thing(subject)
        same = [row for row in own if (number and row.number == number) or _is_alike(thing(row.subject), about)]
        if len(same) >= ABOUT_ONE_THING:
            return f"{_ABOUT_THIS} {_PROGRAM}" % {"sender": sender, "count": ABOUT_ONE_THING, "minutes": _MINUTES}
        if len(own) >= OF_ONE_SENDER:
            return _MANY % {"sender": sender, "count": OF_ONE_SENDER, "minutes": _MINUTES}
        return ""

    def crowd(self) -> str:
        """Return why a letter of a stranger has to wait, "" where it need not: so many letters have come at once that a
        program may have sent them, each under another name. Those that wait count, so that the flood has to end."""
        people = [row for row in self.rows if row.state != ledger.AUTOMATIC]
        if len({row.sender for row in people}) < SENDERS and len(people) < LETTERS:
            return ""
        return _CROWD % {"senders": SENDERS, "letters": LETTERS, "minutes": _MINUTES}


def thing(subject: str) -> str:
    """Return a subject without what answers put before it."""
    text = subject[:300]
    while match := _REPLY.match(text):
        text = text[match.end() :]
    return " ".join(text.split()).casefold()


def _is_alike(one: str, other: str) -> bool:
    return one == other or bool(one and other and (one in other or other in one))
