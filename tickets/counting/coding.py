"""Write counts under short attribute names, because names are what an aggregate item mostly consists of.

A code is `<kind letter><epoch>:<date>:<name>`; TOTALS and DAY items, whose sort key says the rest, keep the name alone:

    TOTALS   on    open.normal        -o  unassigned.open      w2026-11-16  w.2026-11-16      w  weeks long ago
             =mo   mail.open          *gr  good.resolved
             @7o   group_7.open       @7-o free.group_7.open
             !vo   overdue.open       !wo  due_soon.open        !xo  missed.open
    DAY      c r o m q  created resolved reopened commented received      cm  created.mail
             g b         rated.good rated.bad
             fn fs f0..ff    first.n .sum .<bucket>      d.. done, likewise
    MONTH    h109        h.1.9, a Tuesday       s x  solved missed      g b f0..ff d0..df  as of a DAY
    PEOPLE   <user id, shortened>o    <user id>.open         likewise g b
    TAGS     vpn.o                    open.vpn

The empty name counts the changes that touched the part: as long as it stands still, nothing in the part moved.
"""

from __future__ import annotations

import base64
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from tickets.counting.contributions import (
    BUCKET_NAMES,
    COUNTED_CHANNELS,
    FREE,
    MISSED,
    REPORTED,
    SOLVED,
    UNASSIGNED,
    Contribution,
    Counts,
    Kind,
    Part,
    counts_of,
)
from tickets.counting.months import MonthScope
from tickets.ticket.custom_values import MOST_IDS
from tickets.ticket.due_marks import STATES
from tickets.ticket.fields import Priority, Rating, Status

TOUCHES: Final = ""  # the name under which a part's changes are counted
WEEKS_KEPT: Final = 30  # weeks of unresolved tickets that TOTALS holds one by one; readers show fourteen
OLDER_WEEKS: Final = "w."  # the count of all weeks before those

_KINDS: Final[dict[Kind, str]] = {"TOTALS": "T", "PEOPLE": "P", "TAGS": "G", "DAY": "D", "MONTH": "M"}
_LETTERS: Final = {letter: kind for kind, letter in _KINDS.items()}
_LETTER: Final = {word.value: word.value[0] for word in (*Status, *Rating)}  # of what people and tags are counted by
_WORD: Final = {letter: word for word, letter in _LETTER.items()}
_TOTALS: Final = {
    **{f"{s}.{p}": f"{s[0]}{p[0]}" for s in Status for p in Priority},
    **{f"{UNASSIGNED}.{s}": f"-{s[0]}" for s in Status},
    **{f"{channel}.{s}": f"={channel[0]}{s[0]}" for channel in COUNTED_CHANNELS for s in Status},
    **{f"{rating}.{s}": f"*{rating[0]}{s[0]}" for rating in Rating for s in Status},
    **{f"group_{n}.{s}": f"@{n}{s[0]}" for n in range(1, MOST_IDS + 1) for s in Status},
    **{f"{FREE}group_{n}.{s}": f"@{n}-{s[0]}" for n in range(1, MOST_IDS + 1) for s in Status},
    **{f"{state}.{s}": f"!{letter}{s[0]}" for state, letter in zip(STATES, "vwx", strict=True) for s in Status},
    REPORTED: "k",
}
_DAY: Final = {
    "created": "c",
    "resolved": "r",
    "reopened": "o",
    "commented": "m",
    "received": "q",
    **{f"created.{channel}": f"c{channel[0]}" for channel in COUNTED_CHANNELS},
    **{f"rated.{rating}": rating[0] for rating in Rating},
    **{
        f"{what}.{name}": f"{what[0]}{code}"
        for what in ("first", "done")
        for name, code in [("n", "n"), ("sum", "s"), *((name, f"{i:x}") for i, name in enumerate(BUCKET_NAMES))]
    },
}
_MONTH: Final = {
    **{f"h.{weekday}.{hour}": f"h{weekday}{hour:02}" for weekday in range(7) for hour in range(24)},
    **{name: short for name, short in _DAY.items() if name.startswith(("rated.", "first.", "done."))},
    SOLVED: "s",
    MISSED: "x",
}
_SHORT: Final[dict[Kind, dict[str, str]]] = {"TOTALS": _TOTALS, "DAY": _DAY, "MONTH": _MONTH}
_LONG: Final = {kind: {code: name for name, code in names.items()} for kind, names in _SHORT.items()}
_UNKNOWN: Final = "?"  # begins the name of a count that a newer version added: it is kept, and not shown
_HEX: Final = re.compile(r"[0-9a-f]{32}\Z")
_PART: Final = re.compile(r"([TPGDM])(\d+):([^:]*):(.*)\Z", re.DOTALL)


@lru_cache(maxsize=16_384)
def code(part: Part, name: str) -> str:
    """Return the attribute of a count among those of other parts."""
    date = _short_place(part.date) if part.kind == "MONTH" else part.date
    return f"{_KINDS[part.kind]}{part.epoch}:{date}:{short(part.kind, name)}"


@lru_cache(maxsize=16_384)
def decode(attribute: str) -> tuple[Part, str] | None:
    """Return part and name of what `code` made, None for another attribute."""
    match = _PART.match(attribute)
    if match is None:
        return None
    kind = _LETTERS[match[1]]
    date = _long_place(match[3]) if kind == "MONTH" else match[3]
    return Part(kind, date, int(match[2])), long(kind, match[4])


def short(kind: Kind, name: str) -> str:
    """Return the code of a count's name within its kind of part."""
    if name == TOUCHES:
        return ""
    if name.startswith(_UNKNOWN):
        return name.removeprefix(_UNKNOWN)
    if kind == "TOTALS" and name.startswith("w."):
        return f"w{name[2:]}"
    if kind in _SHORT:
        return _SHORT[kind][name]
    if kind == "PEOPLE":
        person, _, word = name.rpartition(".")
        return f"{_short_id(person)}{_LETTER[word]}"
    status, _, tag = name.partition(".")
    return f"{tag}.{_LETTER[status]}"


def long(kind: Kind, name: str) -> str:
    """Return the count's name of what `short` made."""
    if not name:
        return TOUCHES
    if kind == "TOTALS" and name.startswith("w"):
        return f"w.{name[1:]}"
    if kind in _LONG:
        return _LONG[kind].get(name, f"{_UNKNOWN}{name}")
    if name[-1] not in _WORD:
        return f"{_UNKNOWN}{name}"
    if kind == "PEOPLE":
        return f"{_long_id(name[:-1])}.{_WORD[name[-1]]}"
    return f"{_WORD[name[-1]]}.{name[:-2]}"


def is_wide(attribute: str) -> bool:
    """Tell whether a code is one of PEOPLE or TAGS, of which there may be any number."""
    return attribute[:1] in ("P", "G")


def entity(attribute: str) -> str:
    """Return what the codes of one person or one tag share, in all epochs: the letter of the kind, and the name."""
    return attribute[0] + attribute.partition(":")[2][:-1]


def _short_id(person: str) -> str:
    if not _HEX.match(person):
        return f"={person}"
    return base64.urlsafe_b64encode(bytes.fromhex(person)).decode().rstrip("=")


def _long_id(text: str) -> str:
    return text[1:] if text.startswith("=") else base64.urlsafe_b64decode(f"{text}==").hex()


def _short_place(place: str) -> str:
    """Shorten the place of a month: "g/2026-11/group_7" to "g202611group_7", with a person's id as among PEOPLE."""
    scope, month, value = place.split("/")
    return f"{scope}{month.replace('-', '')}{_short_id(value) if scope == MonthScope.PERSON else value}"


def _long_place(text: str) -> str:
    scope, year, month, value = text[0], text[1:5], text[5:7], text[7:]
    return f"{scope}/{year}-{month}/{_long_id(value) if scope == MonthScope.PERSON else value}"


# --- whole items ---


def coded(counts: Contribution) -> Counts:
    """Return counts of any parts by code, without zeros."""
    return counts_of({code(part, name): n for part, some in counts.items() for name, n in some.items() if n})


def decoded(attributes: Mapping[str, int]) -> Contribution:
    """Return the counts among these attributes, touches too."""
    counts: Contribution = defaultdict(Counter)
    for attribute, n in attributes.items():
        if known := decode(attribute):
            counts[known[0]][known[1]] += n
    return dict(counts)


def known(counts: Mapping[str, int]) -> Counts:
    """Return the counts by name without those that only a newer version can read."""
    return Counts({name: n for name, n in counts.items() if not name.startswith(_UNKNOWN)})


def added(*several: Mapping[str, int]) -> Counts:
    total = Counts()
    for counts in several:
        total.update(counts)
    return total


def nonzero(counts: Mapping[str, int]) -> Counts:
    """Return the same without zeros."""
    return Counter({name: n for name, n in counts.items() if n})


# --- weeks ---


def without_old_weeks(counts: Counts, weeks_from: str) -> Counts:
    """Return the same with every week before `weeks_from` added to the count of older weeks."""
    kept: Counts = Counter()
    for name, n in counts.items():
        kept[OLDER_WEEKS if name.startswith("w.") and name[2:] < weeks_from else name] += n
    return kept


def weeks_from(names: Iterable[str], former: str) -> str:
    """Return the first week to be held by itself when at most WEEKS_KEPT are: never earlier than the `former` one."""
    weeks = sorted(name[2:] for name in names if name.startswith("w.") and name != OLDER_WEEKS)
    return max(former, *weeks[-WEEKS_KEPT:][:1], "") if len(weeks) > WEEKS_KEPT else former
