"""Say what every ticket adds to its tenant's numbers, as pure functions.

An aggregate is a sum over tickets: `contribution` says what one summary adds to it, from that item alone. A change
of a summary therefore changes the aggregates by the contribution of its new image minus that of its old one, a
deletion takes back all that the ticket ever added, and a recount adds up the contributions of the stored summaries.
Nothing else needs to be known, whatever wrote the ticket and however often a batch is delivered.

Source: AWS, "Amazon DynamoDB data modeling for Multi-Tenancy, part 2", aggregations by DynamoDB Streams. Its filter,
on the resolver in the new image, misses deletions and, by `exists`, nothing else; ours is on the sort key.

A part is a group of counts. Names of the counts in each kind of part:

    TOTALS   <status>.<priority>          tickets
             unassigned.<status>          tickets that nobody has
             <channel>.<status>           tickets that came by mail, a form or the API
             <state>.<status>             tickets that are overdue, due soon, or have missed a target
             <rating>.<status>            tickets that their requesters have rated
             <group>.<status>             tickets of a group, group_7.open
             free.<group>.<status>        those of them that nobody has
             reported                     tickets that months count
             w.<monday>                   unresolved tickets that were opened in this week, see `coding.WEEKS_KEPT`
    PEOPLE   <resolver>.<status>          tickets of a user id
             <resolver>.<rating>          those of them that are rated
    TAGS     <status>.<tag>               tickets
    DAY      created resolved reopened commented          events of this day; a ticket may be resolved more than once
             received                                     those of the comments that people outside the desk wrote
             created.<channel>                            tickets of this day that came by mail, a form or the API
             rated.<rating>                               tickets that were last rated on this day
             first.n first.sum first.<bucket>             first responses: number, seconds, histogram
             done.n done.sum done.<bucket>                resolutions that still hold, likewise
    MONTH    h.<weekday>.<hour>          tickets that were opened then, in this month
             solved missed               those of them that are resolved, that have missed a target
             first.<bucket>              first responses of this month: histogram
             done.<bucket>               resolutions of this month that still hold, likewise
             rated.<rating>              tickets that were last rated in this month

Days, hours and weeks are those of the time zone that the summary names, UTC where it names none.

A MONTH is one of the whole desk, or of one channel, group, person or tag (months.py), of which a ticket has at most
some fifteen. Tickets that were written before there were months have no `count_form`, and add nothing to any: nothing
is taken back that was never added. `reported` in TOTALS says how many tickets are in months. A rebuild adds the others.

Spam adds nothing. Of a ticket that was merged into another one the comments are counted, which stand in the other's
history, and nothing else: it is no ticket of its own.

Tickets made by hand are all those that came by no channel above: nothing is counted for them, so that the numbers of a
desk without mail stay as they were, and so do its tickets of before channels.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from portal import clock
from tickets.counting.months import MonthPlace, MonthScope
from tickets.ticket import due_marks
from tickets.ticket.custom_values import GROUP_ID
from tickets.ticket.fields import Channel, Priority, Rating, Status, is_unresolved
from tickets.ticket.stored import COMMENTED, COUNT_FORM, RECEIVED, REOPENED, RESOLVED

# Upper bounds of the histograms in seconds, some two to a factor of four; above the last is "over".
BUCKETS: Final = (
    300, 900, 1800, 3600, 7200, 14400, 28800, 57600, 86400,
    172800, 345600, 604800, 1209600, 2592000, 7776000,
)  # fmt: skip
OVER: Final = "over"
BUCKET_NAMES: Final = (*map(str, BUCKETS), OVER)


def bucket_of(seconds: float) -> str:
    """Name the bucket of a duration: its upper bound in seconds, or OVER."""
    return BUCKET_NAMES[bisect_left(BUCKETS, seconds)]


# --- the counts of a summary ---


Kind = Literal["TOTALS", "PEOPLE", "TAGS", "DAY", "MONTH"]
TOTALS: Final = "TOTALS"
TAGS: Final = "TAGS"
DAY: Final = "DAY"
MONTH: Final = "MONTH"
REPORTED: Final = "reported"
DURATIONS: Final = {"first": "responded_at", "done": "resolved_at"}  # by their names in counts: where they end
SOLVED, MISSED = "solved", due_marks.MISSED

UNASSIGNED: Final = "unassigned"
FREE: Final = "free."  # begins the counts of a group's tickets that nobody has
EVENT_NAMES: Final = {COMMENTED: "commented", RECEIVED: "received", RESOLVED: "resolved", REOPENED: "reopened"}
COUNTED_CHANNELS: Final[tuple[Channel, ...]] = tuple(channel for channel in Channel if channel is not Channel.HAND)

# The attributes of a summary that `contribution` reads.
COUNTED: Final = (
    "status", "priority", "channel", "epoch", "zone", "created_at", "resolver", "tags", "days", "responded_at",
    "resolved_at", "rating", "rated_at", "merged_into", "spam_at", "group", "due", "count_form",
)  # fmt: skip

# Raised by `contribution` for an image that no rule of ours writes.
UNCOUNTABLE: Final = (KeyError, ValueError, TypeError, AttributeError, IndexError, InvalidOperation)


class Part(NamedTuple):
    """A group of counts that are verified together. `date` is that of a DAY, the place of a MONTH, or "". An epoch
    begins with each rebuild; readers add all epochs up."""

    kind: Kind
    date: str
    epoch: int


Plain = Mapping[str, Any]  # a summary in plain Python: {"status": "open", "days": {"2026-11-20c": Decimal(1)}, ...}
Counts = Counter[str]  # of one part, by name
Contribution = dict[Part, Counts]
_NOTHING: Final[Counts] = Counter()


def contribution(image: Plain) -> Contribution:
    """Add up what the summary with this image adds to the aggregates of its tenant. Zero counts are left out.

    It reads the attributes in COUNTED and no others. Raises one of UNCOUNTABLE for an image that no rule of ours
    writes.
    """
    status, priority = Status(image["status"]).value, Priority(image["priority"]).value
    channel = Channel(image.get("channel", Channel.HAND))
    rating = Rating(image["rating"]) if image.get("rating") else None
    epoch = _whole(image.get("epoch", 0))
    zone = _text(image.get("zone", clock.UTC_NAME))
    created_at = _local(image["created_at"], zone)
    if "spam_at" in image:
        return {}
    if "merged_into" in image:
        said: Contribution = {}
        _add_days(said, image, epoch, only=(COMMENTED, RECEIVED))
        return said
    totals = Counter([f"{status}.{priority}", *(f"{one}.{status}" for one in due_marks.states(image.get("due")))])
    counted: Contribution = {Part("TOTALS", "", epoch): totals}
    if resolver := _text(image["resolver"]):
        counted[Part("PEOPLE", "", epoch)] = Counter(
            [f"{resolver}.{status}", *([f"{resolver}.{rating}"] if rating else [])]
        )
    else:
        totals[f"{UNASSIGNED}.{status}"] += 1
    if group := image.get("group"):
        if not GROUP_ID.match(group):
            raise ValueError("this is no id of a group")
        totals[f"{group}.{status}"] += 1
        if not resolver:
            totals[f"{FREE}{group}.{status}"] += 1
    if is_unresolved(status):
        totals[f"w.{monday(created_at.date())}"] += 1
    if tags := [f"{status}.{_text(tag)}" for tag in _list(image.get("tags", []))]:
        counted[Part("TAGS", "", epoch)] = Counter(tags)
    opened = _of_day(counted, created_at.date(), epoch)
    opened["created"] += 1
    if channel is not Channel.HAND:
        totals[f"{channel}.{status}"] += 1
        opened[f"created.{channel}"] += 1
    if rating:
        totals[f"{rating}.{status}"] += 1
        if "rated_at" in image:
            _of_day(counted, _local(image["rated_at"], zone).date(), epoch)[f"rated.{rating}"] += 1
    _add_days(counted, image, epoch)
    _add_durations(counted, image, zone, epoch)
    _add_months(counted, image, zone, epoch)
    return counted


def _add_months(counted: Contribution, image: Plain, zone: str, epoch: int) -> None:
    """Add what a ticket adds to the months of its events, for the desk and for each of its values."""
    if _whole(image.get("count_form", 0)) < COUNT_FORM:
        return
    counted[Part("TOTALS", "", epoch)][REPORTED] += 1
    by_month: defaultdict[str, Counts] = defaultdict(Counter)
    created_at = _local(image["created_at"], zone)
    opened = by_month[f"{created_at:%Y-%m}"]
    opened[f"h.{created_at.weekday()}.{created_at.hour}"] += 1
    opened[SOLVED] += not is_unresolved(image["status"])
    opened[MISSED] += MISSED in due_marks.states(image.get("due"))
    for what, attribute in DURATIONS.items():
        if attribute in image:
            end = _local(image[attribute], zone)
            by_month[f"{end:%Y-%m}"][f"{what}.{bucket_of(_seconds(created_at, end))}"] += 1
    if (rating := image.get("rating")) and "rated_at" in image:
        by_month[f"{_local(image['rated_at'], zone):%Y-%m}"][f"rated.{Rating(rating)}"] += 1
    for month, counts in by_month.items():
        some = counts_of({name: n for name, n in counts.items() if n})
        for scope, value in _scopes(image):
            counted[Part(MONTH, str(MonthPlace(scope, month, value)), epoch)] = some


def _scopes(image: Plain) -> list[tuple[MonthScope, str]]:
    found = [(MonthScope.ALL, ""), (MonthScope.CHANNEL, str(image.get("channel", Channel.HAND)))]
    found += [(MonthScope.GROUP, group)] if (group := image.get("group")) else []
    found += [(MonthScope.PERSON, resolver)] if (resolver := image["resolver"]) else []
    return found + [(MonthScope.TAG, tag) for tag in dict.fromkeys(_list(image.get("tags", [])))]


def _local(stamp: str, zone: str) -> datetime:
    """Return a stored moment in the time zone in which a ticket is counted, whose date is the day that it counts on."""
    moment = clock.parse(stamp)
    return moment if zone == clock.UTC_NAME else moment.astimezone(clock.zone_of(zone))


def _add_days(counted: Contribution, image: Plain, epoch: int, only: Collection[str] = tuple(EVENT_NAMES)) -> None:
    for name, count in image.get("days", {}).items():
        if (n := _whole(count)) and name[-1] in only:
            _of_day(counted, date.fromisoformat(name[:-1]), epoch)[EVENT_NAMES[name[-1]]] += n


def _add_durations(counted: Contribution, image: Plain, zone: str, epoch: int) -> None:
    start = _local(image["created_at"], zone)
    for what, attribute in DURATIONS.items():
        if attribute in image:
            end = _local(image[attribute], zone)
            seconds = _seconds(start, end)
            counts = _of_day(counted, end.date(), epoch)
            for name, n in (("n", 1), ("sum", seconds), (bucket_of(seconds), 1)):
                counts[f"{what}.{name}"] += n


def _seconds(start: datetime, end: datetime) -> int:
    return max(0, round((end - start).total_seconds()))  # clocks of two machines may differ


def _of_day(counted: Contribution, day: date, epoch: int) -> Counts:
    return counted.setdefault(Part("DAY", day.isoformat(), epoch), Counter())


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int | Decimal) or value != int(value):
        raise TypeError(f"{value!r} is no whole number")
    return int(value)


@lru_cache(maxsize=1024)
def monday(day: date) -> str:
    return (day - timedelta(days=day.weekday())).isoformat()


def difference(new: Contribution, old: Contribution) -> Contribution:
    """Subtract: new - old, without zeros."""
    changed: Contribution = {}
    for part in new.keys() | old.keys():
        one, other = new.get(part, _NOTHING), old.get(part, _NOTHING)
        if moved := {name: n for name in one.keys() | other.keys() if (n := one.get(name, 0) - other.get(name, 0))}:
            changed[part] = counts_of(moved)
    return changed


def counts_of(numbers: Mapping[str, int]) -> Counts:
    """Return these as counts. `Counter(numbers)` first asks what they are, which takes longer than the rest."""
    made: Counts = Counter()
    dict.update(made, numbers)
    return made


def total(contributions: Iterable[Contribution]) -> Contribution:
    """Add up, without zeros."""
    added: Contribution = defaultdict(Counter)
    for one in contributions:
        for part, counts in one.items():
            added[part].update(counts)
    return difference(added, {})


def merged(counts: Contribution) -> dict[tuple[Kind, str], Counts]:
    """Add the epochs up: counts by kind and date, as readers want them."""
    added: dict[tuple[Kind, str], Counts] = defaultdict(Counter)
    for part, one in counts.items():
        added[part.kind, part.date].update(one)
    return dict(added)
