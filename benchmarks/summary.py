"""Report what was measured: as a table, as JSON, and as a verdict on each page: flat or growing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any, Final

from benchmarks.fill import Filled
from benchmarks.measure import Count, Round, Timing
from benchmarks.measured_pages import PAGES, MeasuredPage
from benchmarks.stack import table

FLAT: Final = 1.25  # the largest tenant's median over the smallest's
# Numbers of tickets have more digits in a larger tenant: one read may begin one more block of 4 KB.
READ_ROUNDING: Final = 0.5

Counts = Mapping[tuple[str, str], Count]  # by page and tenant


@dataclass(frozen=True)
class Figures:
    """Times in milliseconds. `p50` is the median of the rounds' medians, `spread` half of their middle half's width;
    `p10` and `p95` are of all requests together. `portal_cpu` and `engine_cpu` are processor time per request."""

    p10: float
    p50: float
    spread: float
    p95: float
    per_second: float
    portal_cpu: float
    engine_cpu: float

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> Figures:
        medians = [median(r.seconds) * 1000 for r in rounds]
        everything = [s * 1000 for r in rounds for s in r.seconds]
        twentieths = quantiles(everything * 2, n=20, method="inclusive")  # twice, because it takes two at least
        low, high = middle_half(medians)
        return cls(
            p10=round(twentieths[1], 2),
            p50=round(median(medians), 2),
            spread=round((high - low) / 2, 2),
            p95=round(twentieths[-1], 2),
            per_second=round(median(len(r.seconds) / r.wall for r in rounds), 1),
            portal_cpu=round(sum(r.portal_cpu for r in rounds) * 1000 / len(everything), 2),
            engine_cpu=round(sum(r.engine_cpu for r in rounds) * 1000 / len(everything), 2),
        )


@dataclass(frozen=True)
class PageVerdict:
    """Of one page: the largest tenant against the smallest, round by round. `low` to `high` is the middle half;
    `undisturbed` is the ratio of the p10s, which suffer least from others on the machine.

    `verdict` is "flat", "grows", or "noisy" where the limit lies within the middle half of the rounds.
    `differs` says which counts are not the same in all sizes, "" where none differs.
    """

    page: str
    ratio: float
    low: float
    high: float
    undisturbed: float
    verdict: str
    differs: str


def middle_half(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, high


def judge(tenants: Sequence[Filled], counts: Counts, timings: Sequence[Timing]) -> list[PageVerdict]:
    """Return one verdict for each page, on the times of one request at a time."""
    plain = [t for t in tenants if t.shards == 1]
    one_by_one = {(t.page.name, t.visitor.tenant.slug): t for t in timings if t.concurrency == 1}
    return [_judge(page, tenants, plain, counts, one_by_one) for page in PAGES]


def _judge(
    page: MeasuredPage,
    tenants: Sequence[Filled],
    plain: Sequence[Filled],
    counts: Counts,
    timings: Mapping[tuple[str, str], Timing],
) -> PageVerdict:
    small, large = timings[page.name, plain[0].slug], timings[page.name, plain[-1].slug]
    ratios = [median(b.seconds) / median(a.seconds) for a, b in zip(small.rounds, large.rounds, strict=True)]
    ratio, (low, high) = median(ratios), middle_half(ratios)
    verdict = "flat" if ratio <= FLAT else "noisy" if low <= FLAT else "grows"
    sharded = [t for t in tenants if t.shards > 1]
    differs = [] if page.grows else _differences([counts[page.name, t.slug] for t in plain])
    if {counts[page.name, t.slug].trips for t in (*plain, *sharded)} != {counts[page.name, plain[0].slug].trips}:
        differs.append("trips")
    undisturbed = Figures.of(large.rounds).p10 / Figures.of(small.rounds).p10
    return PageVerdict(
        page=page.name,
        ratio=round(ratio, 3),
        low=round(low, 3),
        high=round(high, 3),
        undisturbed=round(undisturbed, 3),
        verdict=verdict,
        differs=", ".join(differs),
    )


def _differences(counts: Sequence[Count]) -> list[str]:
    allowed = {"calls": 0.0, "items": 0.0, "read_units": READ_ROUNDING, "write_units": 0.0}
    found = []
    for name, rounding in allowed.items():
        values = [getattr(c, name) for c in counts]
        if max(values) - min(values) > rounding:
            found.append(name)
    return found


def as_json(
    about: Mapping[str, Any], counts: Counts, timings: Sequence[Timing], verdicts: Sequence[PageVerdict]
) -> dict[str, Any]:
    return {
        **about,
        "pages": {page.name: page.title for page in PAGES},
        "counts": [{"page": page, "tenant": tenant, **asdict(c)} for (page, tenant), c in counts.items()],
        "timings": [
            {
                "page": t.page.name,
                "tenant": t.visitor.tenant.slug,
                "tickets": t.visitor.tenant.size,
                "shards": t.visitor.tenant.shards,
                "concurrency": t.concurrency,
                "requests": sum(len(r.seconds) for r in t.rounds),
                "medians": [round(median(r.seconds) * 1000, 3) for r in t.rounds],
                **asdict(Figures.of(t.rounds)),
            }
            for t in timings
        ],
        "verdicts": [asdict(v) for v in verdicts],
    }


def as_text(
    tenants: Sequence[Filled], counts: Counts, timings: Sequence[Timing], verdicts: Sequence[PageVerdict]
) -> str:
    """Return four tables in Markdown, as they stand in README.md."""
    figures = {(t.page.name, t.visitor.tenant.slug, t.concurrency): Figures.of(t.rounds) for t in timings}
    concurrencies = sorted({t.concurrency for t in timings})
    tables = [_times(tenants, figures, concurrencies), _costs(tenants, counts), _verdicts(verdicts, tenants)]
    return "\n\n".join([*tables, _outside(tenants, timings)])


def _outside(tenants: Sequence[Filled], timings: Sequence[Timing]) -> str:
    """Compare pages for people outside with the list, round by round. Their first byte comes with the last one."""
    rounds = {(t.page.name, t.visitor.tenant.slug): t.rounds for t in timings if t.concurrency == 1}
    rows = []
    for page in PAGES:
        if page.is_outside:
            ratios = [
                median(one.seconds) / median(of_list.seconds)
                for tenant in tenants
                for one, of_list in zip(rounds[page.name, tenant.slug], rounds["list", tenant.slug], strict=True)
            ]
            low, high = middle_half(ratios)
            rows.append([page.title, f"{median(ratios):.2f}", f"{low:.2f} to {high:.2f}"])
    return table(["page", "over the list", "middle half of rounds"], rows)


def _times(
    tenants: Sequence[Filled], figures: Mapping[tuple[str, str, int], Figures], concurrencies: Sequence[int]
) -> str:
    head = ["page", "tickets"]
    for c in concurrencies:
        head += [f"p10 ms, {c} at a time", "p50", "p95", "req/s"]
    head += ["CPU ms: portal", "engine"]
    rows = []
    for page in PAGES:
        for number, tenant in enumerate(tenants):
            row = [page.title if number == 0 else "", tenant.label]
            for c in concurrencies:
                f = figures[page.name, tenant.slug, c]
                row += [f"{f.p10:.1f}", f"{f.p50:.1f} ±{f.spread:.1f}", f"{f.p95:.1f}", f"{f.per_second:.0f}"]
            alone = figures[page.name, tenant.slug, concurrencies[0]]
            rows.append([*row, f"{alone.portal_cpu:.1f}", f"{alone.engine_cpu:.1f}"])
    return table(head, rows)


def _costs(tenants: Sequence[Filled], counts: Counts) -> str:
    shown = {"round trips": "trips", "calls": "calls", "read units": "read_units", "write units": "write_units"}
    rows = [
        [
            page.title,
            *(
                _one_or_all([f"{getattr(counts[page.name, t.slug], name):g}" for t in tenants])
                for name in shown.values()
            ),
        ]
        for page in PAGES
    ]
    order = ", ".join(tenant.label for tenant in tenants)
    return table(["page", *shown], rows) + f"\n\nSeveral figures are those of {order} tickets."


def _one_or_all(values: list[str]) -> str:
    return values[0] if len(set(values)) == 1 else " / ".join(values)


def _verdicts(verdicts: Sequence[PageVerdict], tenants: Sequence[Filled]) -> str:
    plain = [t for t in tenants if t.shards == 1]
    titles = {page.name: page.title for page in PAGES}
    head = ["page", f"{plain[-1].label} / {plain[0].label}", "middle half of rounds", "of p10", "times", "counts"]
    rows = [
        (titles[v.page], f"{v.ratio:.2f}", f"{v.low:.2f} to {v.high:.2f}", f"{v.undisturbed:.2f}", v.verdict,
         v.differs or "equal")
        for v in verdicts
    ]  # fmt: skip
    return table(head, rows)
