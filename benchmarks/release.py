"""Compare figures with those of the last release, which `--keep-as-release` has written to release.json."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.stack import table
from proofs.portal_server import ROOT

KEPT: Final = Path(__file__).with_name("release.json")
_RATIOS: Final = {
    "p50": "p50", "portal_cpu": "CPU: portal", "engine_cpu": "engine", "per_second": "req/s", "trips": "trips",
    "units": "units",
}  # fmt: skip

Kept = Mapping[str, Any]


def figures(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a report: the first tenant's figures of each page, its floor, stream work and memory."""
    tenant, most = report["timings"][0]["tenant"], max(t["concurrency"] for t in report["timings"])
    pages: dict[str, dict[str, Any]] = {name: {"title": title} for name, title in report["pages"].items()}
    for timing in report["timings"]:
        if timing["tenant"] == tenant and timing["concurrency"] == 1:
            pages[timing["page"]] |= _picked(timing, "p50", "portal_cpu", "engine_cpu")
        if timing["tenant"] == tenant and timing["concurrency"] == most:
            pages[timing["page"]] |= _picked(timing, "per_second")
    for count in report["counts"]:
        if count["tenant"] == tenant:
            pages[count["page"]] |= {"trips": count["trips"], "units": count["read_units"] + count["write_units"]}
    for page, floor in report["floors"].items():
        pages[page] |= {"floor_p50": floor["p50"], "floor_cpu": floor["portal_cpu"]}
    return {
        "commit": _commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        **_picked(report, "machine", "engine", "web", "requests", "tickets"),
        "concurrency": most,
        "pages": pages,
        "stream_work": {one["title"]: _picked(one, "per_second", "cpu_each") for one in report["stream_work"]},
        "memory": _by_name(report["memory"]),
    }


def _picked(of: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: of[name] for name in names}


def _by_name(memory: list[dict[str, Any]]) -> dict[str, float]:
    """Return the PSS of all processes of a name together, in MB."""
    names = dict.fromkeys(each["name"] for each in memory)
    return {name: round(sum(each["pss"] for each in memory if each["name"] == name), 1) for name in names}


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def keep(now: Kept) -> None:
    KEPT.write_text(json.dumps(now, indent=1) + "\n")


def kept() -> Kept:
    found: Kept = json.loads(KEPT.read_text())
    return found


def as_text(now: Kept, then: Kept) -> str:
    """Return what is compared, and two tables of ratios: of pages, and of stream work and memory."""
    pages = [_page(page, then["pages"].get(name, {})) for name, page in now["pages"].items()]
    others = [
        [f"{title}: {column}", _ratio(one, then["stream_work"].get(title, {}), figure)]
        for figure, column in (("per_second", "a second"), ("cpu_each", "CPU"))
        for title, one in now["stream_work"].items()
    ]
    others += [[f"memory: {name}", _ratio(now["memory"], then["memory"], name)] for name in now["memory"]]
    about = "; ".join(str(then[name]) for name in ("commit", "date", "machine", "engine", "web"))
    return "\n\n".join(
        [
            f"Ratios to the last release: {about}; {then['tickets']} tickets, {then['concurrency']} at a time.",
            table(["page", *_RATIOS.values(), "p50 / floor", "CPU / floor"], pages),
            table(["work and memory", "now / release"], others),
        ]
    )


def _page(now: Kept, then: Kept) -> list[str]:
    above = [
        f"{_ratio(now, now, figure, floor)} ({_ratio(then, then, figure, floor)})"
        for figure, floor in (("p50", "floor_p50"), ("portal_cpu", "floor_cpu"))
    ]
    return [now["title"], *(_ratio(now, then, figure) for figure in _RATIOS), *above]


def _ratio(above: Kept, below: Kept, figure: str, of: str = "") -> str:
    """Return one figure over another; a dash where one is missing or nothing."""
    divisor = below.get(of or figure)
    return f"{above[figure] / divisor:.2f}" if divisor and figure in above else "-"
