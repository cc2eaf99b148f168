"""Notice letters that answer each other, and senders who send too much, by the newest rows of the ledger.

Two programs that answer each other without saying that they are programs stop here: after four letters of one sender
about one thing within ten minutes, the fifth waits for a person of the desk, and nothing answers it. Counting reads the
ledger and writes nothing.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from portal import clock
from portal.dynamo.store import Store
from tickets.letters import ledger

WINDOW: Final = timedelta(minutes=10)
ABOUT_ONE_THING: Final = 4  # letters of one sender within the window; more wait
OF_ONE_SENDER: Final = 40
_LOOKED_AT: Final = 100  # rows of the ledger; a Query of some 10 read units at most
_REPLY: Final = re.compile(r"\s*(?:re|aw|fw|fwd|wg|sv|antw|tr|rv|res|automatic reply|auto|out of office)\s*:\s*", re.I)


def sentence(repository: Store, *, sender: str, number: int, subject: str) -> str:
    """Return why a letter has to wait for a person, "" where it need not. `number` is that of the ticket that it would
    be filed to, 0 for a new one. Costs one Query."""
    recent = ledger.since(repository, clock.stamp(clock.now() - WINDOW), most=_LOOKED_AT)
    own = [row for row in recent if row.sender == sender]
    about = thing(subject)
    same = [row for row in own if (number and row.number == number) or _is_alike(thing(row.subject), about)]
    minutes = int(WINDOW.total_seconds() // 60)
    if len(same) >= ABOUT_ONE_THING:
        return (
            f"{sender} has sent more than {ABOUT_ONE_THING} letters about this within {minutes} minutes. "
            "It may be a program that answers the desk's own letters."
        )
    if len(own) >= OF_ONE_SENDER:
        return f"{sender} has sent more than {OF_ONE_SENDER} letters within {minutes} minutes."
    return ""


def thing(subject: str) -> str:
    """Return a subject without what answers put before it."""
    text = subject[:300]
    while match := _REPLY.match(text):
        text = text[match.end() :]
    return " ".join(text.split()).casefold()


def _is_alike(one: str, other: str) -> bool:
    return one == other or bool(one and other and (one in other or other in one))
