"""Make a desk's statement of costs for a month, from the capacity that processes have measured and the price table.

Months and days are those of UTC, as in AWS's own bills. Units are what DynamoDB reported for writes, and what its rules
say for reads (portal/dynamo/meter.py). Files are counted exactly. The size of the items in DynamoDB is an estimate
from SAMPLE tickets, made when a statement is asked for and the last one is older than MEASURED_DAYS.
"""

from __future__ import annotations

from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal import clock
from portal.dynamo import meter
from portal.dynamo.client import fan_out
from portal.dynamo.models import RawItems
from portal.dynamo.store import Store
from portal.errors import Invalid
from portal.hosting import prices
from portal.load import spending
from portal.load.spending import COUNT, SpentDay, day_of
from tenants.tenancy.context import TenantContext
from tickets.attachments import attachments
from tickets.counting import months
from tickets.ticket import stored as tickets
from tickets.ticket.stored import TICKETS, CounterItem


class Feature(NamedTuple):
    """One feature: its name in files, its title, a sentence that says what it is, and its tables as declared."""

    name: str
    title: str
    sentence: str
    tables: tuple[str, ...]


def _feature(name: str, title: object, sentence: object, *tables: str) -> Feature:
    return Feature(name, title, sentence, tables)  # type: ignore[arg-type]  # lazy texts


FEATURES: Final = (
    _feature(
        "tickets", gettext_lazy("Tickets"),
        gettext_lazy("Tickets with their comments and history, their lists, and the counts of dashboards and reports."),
        "Support.Tickets",
    ),
    _feature(
        "search", gettext_lazy("Search"), gettext_lazy("The index of all words, its upkeep, and each search."),
        "Support.Search",
    ),
    _feature(
        "letters", gettext_lazy("Mail with requesters"),
        gettext_lazy("Letters that came in, and what is known of those that went out."),
        "Support.Letters", "Support.Mail",
    ),
    _feature(
        "deliveries", gettext_lazy("Deliveries"),
        gettext_lazy("Mail and webhooks on their way out, and the log of deliveries."),
        "Events.Outbox", "Events.Deliveries", "Events.DeadLetters", "Events.Endpoints", "Events.Secrets",
        "Events.Queues",
    ),
    _feature(
        "due", gettext_lazy("Scheduled work"),
        gettext_lazy("Snoozed tickets, targets, reminders and mail at set times."), "Events.Due",
    ),
    _feature(
        "inbox", gettext_lazy("Notifications"), gettext_lazy("The inbox of each member."), "Support.Inboxes",
    ),
    _feature(
        "requesters", gettext_lazy("Requesters"), gettext_lazy("People outside the desk, and finding them."),
        "Support.Requesters",
    ),
    _feature(
        "outside", gettext_lazy("Public pages"),
        gettext_lazy("The public form and the pages of requesters, and their limits."), "Support.Outside",
    ),
    _feature(
        "live", gettext_lazy("Open pages"),
        gettext_lazy("Who else is on a ticket, and whether something has changed, while pages are open."),
        "Support.Presence",
    ),
    _feature("articles", gettext_lazy("Help centre"), gettext_lazy("Articles and their versions."), "Support.Articles"),
    _feature(
        "setup", gettext_lazy("How the desk is set up"),
        gettext_lazy("Settings, fields, groups, views, rules and ready answers, which most pages read."),
        "Support.Setups", "Support.Groups", "Support.Views", "Support.Rules", "Support.ReadyAnswers",
    ),
    _feature(
        "exports", gettext_lazy("Exports"), gettext_lazy("Files of the whole desk, in parts."), "Support.ExportParts",
    ),
    _feature(
        "api", gettext_lazy("API"), gettext_lazy("API keys, and answers that are kept so that a repetition gets them."),
        "Api.Answers", "Tenants.ApiKeys",
    ),
    _feature(
        "members", gettext_lazy("Members and sessions"),
        gettext_lazy("Knowing who asks, in each request: the session, the membership and the desk; and invitations."),
        "Admin.Users", "Tenants.Auditors", "Tenants.Config", "Tenants.Invites", "Tenants.Unreached",
        "Platform.Directory", "Platform.Factors", "Platform.Memberships", "Platform.Sessions", "Platform.Throttles",
        "Platform.Users",
    ),
    _feature(
        "audit", gettext_lazy("Audit trail"), gettext_lazy("Who did what, in hash chains."),
        "Audit.AdminActions", "Audit.Chains",
    ),
    _feature(
        "operation", gettext_lazy("Operation"),
        gettext_lazy("Limits, usage, errors and these costs, and how far work in the background has come."),
        "Limits.Shares", "Platform.Costs", "Platform.Faults", "Platform.Noise", "Streams.DeadLetters",
        "Streams.Leases", "Tenants.Costs", "Tenants.Usage",
    ),
)  # fmt: skip
OTHER: Final = _feature(
    "other", gettext_lazy("Other"), gettext_lazy("Tables of a newer release that runs beside this one.")
)
_BY_TABLE: Final = {table: feature for feature in FEATURES for table in feature.tables}


def of_table(table: str) -> Feature:
    return _BY_TABLE.get(table, OTHER)


SAMPLE: Final = 20  # tickets
MEASURED_DAYS: Final = 7
MEAN_DAYS: Final = 7  # of which a forecast takes the mean
ITEM_OVERHEAD: Final = 100  # bytes of each stored item and index row; AWS, "Pricing for on-demand capacity"
STORED: Final = ("stored", "files")  # among what is counted: it is paid for by the month
_GB: Final = 2**30


@dataclass(frozen=True)
class Units:
    """Capacity units: reads, writes to tables, and writes to their indexes."""

    reads: float = 0.0
    writes: float = 0.0
    index_writes: float = 0.0

    @property
    def dollars(self) -> float:
        return self.reads * prices.READ_UNIT + (self.writes + self.index_writes) * prices.WRITE_UNIT

    def __add__(self, other: Units) -> Units:
        return Units(self.reads + other.reads, self.writes + other.writes, self.index_writes + other.index_writes)


@dataclass(frozen=True)
class CountedCost:
    """Something beside capacity units: how much of it there was, and its price."""

    name: str
    amount: float
    dollars: float


@dataclass(frozen=True)
class Statement:
    """The costs of one month, up to now. `by_feature` has the dearest first. `days` are dollars of capacity by day.

    `forecast` is for the whole month, None where the month is over or no whole day was measured. `stored_bytes` was
    estimated on `measured_on`; both are None where nobody asked while the month lasted. `forecast_of_use` is the
    forecast without what is stored.
    """

    month: str
    is_over: bool
    by_feature: Mapping[Feature, Units]
    counted: Mapping[str, CountedCost]
    days: Mapping[str, float]
    requests: int
    forecast: float | None
    stored_bytes: int | None = None
    measured_on: str | None = None
    units: Units = field(default_factory=Units)
    forecast_of_use: float | None = None

    @property
    def total(self) -> float:
        """Return the dollars of this month up to now."""
        return self.units.dollars + sum(one.dollars for one in self.counted.values())

    @property
    def storage(self) -> float | None:
        """Return the dollars of what is stored, None where that was not measured."""
        if self.stored_bytes is None:
            return None
        return sum(self.counted[name].dollars for name in STORED)

    @property
    def use(self) -> float:
        """Return the dollars of this month up to now without what is stored, which not each desk has measured."""
        return self.total - (self.storage or 0.0)


def this_month() -> str:
    """Return the month of today in UTC, such as 2026-11."""
    return f"{clock.now():%Y-%m}"


def clean_month(text: str) -> str:
    """Return a month that was asked for, this one for "". Raises Invalid for what is no month, or is still to come."""
    try:
        month = months.checked(text) if text else this_month()
    except ValueError:
        raise Invalid(_("Write a month as 2026-11."), field="month") from None
    if not "2000" < month <= this_month():
        raise Invalid(_("There are no costs of this month yet."), field="month")
    return month


def of(tenant: TenantContext, month: str) -> Statement:
    """Return the statement of a month, such as 2026-11: one Query of its days, those of a week before and of a month
    after it. For the month of today this process first writes what it has measured, so that no figure gets smaller
    when the page is loaded again: one UpdateItem.

    Where the last measurement of what is stored is old, it is measured: 1 GetItem, 1 BatchGetItem, SAMPLE Queries and
    1 UpdateItem. Raises Invalid as `clean_month` does, Unavailable, Throttled.
    """
    return _statement(month, _shown(tenant, month), tenant.created_at)


def lines(tenant: TenantContext, month: str) -> Iterator[tuple[str, Feature | str, Units, CountedCost | None]]:
    """Yield the days of a month in their order, each with its features and what was counted, and then under the month
    itself what is stored: together the total of the statement. Costs and raises as `of` does."""
    rows = _shown(tenant, month)
    for day, row in sorted(rows.items()):
        if day.startswith(month):
            for feature, units in _by_feature(row.amounts).items():
                yield day, feature, units, None
            for one in _used(row.amounts):
                if one.amount:
                    yield day, one.name, Units(), one
    counted = _statement(month, rows, tenant.created_at).counted
    for name in STORED:
        if name in counted:
            yield month, name, Units(), counted[name]


def stored_of(tenant_id: str, month: str, created_at: str = "") -> Statement:
    """Return the statement of any desk as it is written, without measuring: one Query, on the platform's account. For
    operators. Without `created_at`, a desk pays for storage from the first of the month on."""
    with spending.on_own_account():
        return _statement(month, _rows(Store("tenant", tenant_id), clean_month(month)), created_at)


def of_platform(month: str) -> Statement:
    """Return the statement of what belongs to no desk, for operators: one Query."""
    begins = _begin(clean_month(month))
    return _statement(month, spending.platform_days(_first_day(begins), _last_day(begins)))


def _shown(tenant: TenantContext, month: str) -> dict[str, SpentDay]:
    """Return the days of a month as `_rows` does, with what this process has measured, and with what is stored."""
    is_now = clean_month(month) == this_month()
    if is_now:
        spending.write_of(tenant.tenant_id)
    rows = _rows(tenant.repository, month, consistent=is_now)
    if _is_unmeasured(month, rows):
        _measure(tenant, rows)
    return rows


def sum_of(several: Sequence[Statement], month: str) -> Statement:
    """Return what several statements of a month come to; the storage is that of those where it was measured."""
    by_feature, counted = dict[Feature, Units](), dict[str, CountedCost]()
    for one in several:
        for feature, units in one.by_feature.items():
            by_feature[feature] = by_feature.get(feature, Units()) + units
        for name, more in one.counted.items():
            so_far = counted.get(name, CountedCost(name, 0, 0.0))
            counted[name] = CountedCost(name, so_far.amount + more.amount, so_far.dollars + more.dollars)
    stored = [one.stored_bytes for one in several if one.stored_bytes is not None]
    forecasts = [one.forecast_of_use for one in several if one.forecast_of_use is not None]
    return Statement(
        month,
        all(one.is_over for one in several),
        dict(sorted(by_feature.items(), key=lambda pair: -pair[1].dollars)),
        counted,
        {},
        sum(one.requests for one in several),
        None,
        sum(stored) if stored else None,
        units=sum(by_feature.values(), Units()),
        forecast_of_use=sum(forecasts) if forecasts else None,
    )


def _rows(store: Store, month: str, *, consistent: bool = False) -> dict[str, SpentDay]:
    """Return the days of a month, of the week before, and of the month behind it, in which it may be measured."""
    begins = _begin(month)
    return spending.days_of(store, _first_day(begins), _last_day(begins), consistent=consistent)


def _first_day(begins: datetime) -> str:
    return day_of(begins - timedelta(days=MEAN_DAYS))


def _last_day(begins: datetime) -> str:
    return day_of(begins + timedelta(days=62))


def _begin(month: str) -> datetime:
    return datetime.fromisoformat(f"{month}-01").replace(tzinfo=UTC)


def _statement(month: str, rows: Mapping[str, SpentDay], created_at: str = "") -> Statement:
    now, begins = clock.now(), _begin(month)
    ends = begins + timedelta(days=monthrange(begins.year, begins.month)[1])
    stored_since = max(begins, clock.parse(created_at)) if created_at else begins
    share = max(timedelta(), min(now, ends) - stored_since) / (ends - begins)  # of the month in which it has stored
    amounts = {day: row.amounts for day, row in rows.items()}
    of_month = Counter[str]()
    for day, found in amounts.items():
        if day.startswith(month):
            of_month.update(found)
    by_feature = _by_feature(of_month)
    # A desk stores nothing in a month before its first one.
    measured_on = _measured(month, rows) if of_month or now < ends else None
    measured = rows[measured_on] if measured_on else SpentDay(Counter())
    sizes = measured.stored_bytes, measured.file_bytes or 0
    counted = _counted(of_month, sizes, share)
    units = sum(by_feature.values(), Units())
    days = {day: _dollars_of_use(found) for day, found in sorted(amounts.items())}
    return Statement(
        month,
        now >= ends,
        by_feature,
        counted,
        {day: dollars for day, dollars in days.items() if day.startswith(month)},
        round(of_month[f"{COUNT}:requests"]),
        _forecast(days, counted, month=month, now=now, ends=ends, stored_since=stored_since),
        sizes[0],
        measured_on,
        units,
        _forecast(days, {}, month=month, now=now, ends=ends, stored_since=stored_since),
    )


def _by_feature(amounts: Mapping[str, float]) -> dict[Feature, Units]:
    found: dict[Feature, Units] = {}
    for name, amount in amounts.items():
        kind, _, table = name.partition(":")
        units = {
            meter.READ: Units(reads=amount),
            meter.WRITE: Units(writes=amount),
            meter.INDEX_WRITE: Units(index_writes=amount),
        }.get(kind)
        if units is not None:
            feature = of_table(table)
            found[feature] = found.get(feature, Units()) + units
    return dict(sorted(found.items(), key=lambda pair: -pair[1].dollars))


def _measured(month: str, rows: Mapping[str, SpentDay]) -> str | None:
    """Return the day on which the sizes of a month were measured: the last one of it, else the first one after it."""
    days = [day for day, row in rows.items() if day >= month and row.stored_bytes is not None]
    return max((day for day in days if day.startswith(month)), default=min(days, default=None))


def _counted(amounts: Mapping[str, float], sizes: tuple[int | None, int], share: float) -> dict[str, CountedCost]:
    """Return what is paid for beside units. Storage is paid for this `share` of the month."""
    used = _used(amounts)
    stored, files = sizes
    if stored is not None:
        used.append(CountedCost("stored", stored, stored / _GB * prices.STORED_GB * share))
        used.append(CountedCost("files", files, files / _GB * prices.FILE_GB * share))
    return {one.name: one for one in used}


def _used(amounts: Mapping[str, float]) -> list[CountedCost]:
    mails, messages, deliveries, downloads, downloaded = (
        amounts.get(f"{COUNT}:{name}", 0.0)
        for name in ("mails", "messages", "deliveries", "downloads", "download_bytes")
    )
    return [
        CountedCost("mails", mails, mails * prices.MAIL),
        CountedCost("deliveries", deliveries, 0.0),
        CountedCost("messages", messages, messages * prices.QUEUE_REQUESTS * prices.QUEUE_REQUEST),
        CountedCost("downloads", downloads, downloads * prices.FILE_READ + downloaded / _GB * prices.OUT_GB),
    ]


def _dollars_of_use(amounts: Mapping[str, float]) -> float:
    """Return the dollars of a day, without what is stored."""
    units = sum(_by_feature(amounts).values(), Units())
    return units.dollars + sum(one.dollars for one in _used(amounts))


def _forecast(
    days: Mapping[str, float],
    counted: Mapping[str, CountedCost],
    *,
    month: str,
    now: datetime,
    ends: datetime,
    stored_since: datetime,
) -> float | None:
    """Return the dollars of the whole month: those so far, and for the rest the mean of the last whole days."""
    if now >= ends:
        return None
    whole = [day for day in days if day < day_of(now)]
    if not whole:
        return None
    first = max(min(whole), day_of(now - timedelta(days=MEAN_DAYS)))
    last = [days.get(day_of(now - timedelta(days=back)), 0.0) for back in range(1, MEAN_DAYS + 1)]
    measured = sum(day_of(now - timedelta(days=back)) >= first for back in range(1, MEAN_DAYS + 1))
    so_far = sum(dollars for day, dollars in days.items() if day.startswith(month))
    storage = sum(counted[name].dollars for name in STORED if name in counted)
    if now > stored_since:
        storage *= (ends - stored_since) / (now - stored_since)
    return so_far + sum(last) / measured * ((ends - now) / timedelta(days=1)) + storage


# --- sizes ---


def _is_unmeasured(month: str, rows: Mapping[str, SpentDay]) -> bool:
    """Tell whether what is stored is to be measured for a month: once a week while it lasts, and once after that."""
    now, last = clock.now(), _measured(month, rows)
    if month == this_month():
        return last is None or last < day_of(now - timedelta(days=MEASURED_DAYS))
    has_use = any(day.startswith(month) and row.amounts for day, row in rows.items())
    return last is None and has_use and day_of(now) <= _last_day(_begin(month))


def _measure(tenant: TenantContext, rows: dict[str, SpentDay]) -> None:
    """Measure what is stored, for today, and write it down."""
    reads: list[Callable[[], int]] = [
        partial(stored_bytes, tenant.repository),
        lambda: attachments.usage(tenant).size,
    ]
    size, files = fan_out(reads)
    today = rows.setdefault(day_of(clock.now()), SpentDay(Counter()))
    today.stored_bytes, today.file_bytes = size, files
    spending.write_of(tenant.tenant_id, stored_bytes=size, file_bytes=files)


def stored_bytes(store: Store) -> int:
    """Estimate the bytes of a desk's tickets and all that belongs to them, index rows included: the mean of up to
    SAMPLE tickets, spread evenly over all numbers that were given out, deleted ones as nothing."""
    counter = store.get(CounterItem, tickets.counter, sort=tickets.COUNTER_TICKET)
    last = int(counter.last) if counter else 0
    numbers = (
        sorted({1 + last * place // SAMPLE for place in range(min(SAMPLE, last))})
        if last > SAMPLE
        else [*range(1, last + 1)]
    )
    sizes = fan_out([partial(_size_of, store, number) for number in numbers])
    return round(sum(sizes) / len(sizes) * last) if sizes else 0


def _size_of(store: Store, number: int) -> int:
    return sum(_with_indexes(raw) for raw in store.query_all(RawItems(TICKETS), tickets.ticket, number))


def _with_indexes(raw: Mapping[str, Any]) -> int:
    size = meter.item_size(dict(raw)) + ITEM_OVERHEAD
    for index in TICKETS.indexes:
        if index.hash in raw and index.range in raw:
            names = {*TICKETS.key_names, index.hash, index.range, *index.include}
            size += meter.item_size({name: raw[name] for name in names if name in raw}) + ITEM_OVERHEAD
    return size
