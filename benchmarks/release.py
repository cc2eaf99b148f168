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
    """Return what is kept of a report: the first tenant's figures of each page."""
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
    return {
        "commit": _commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        **_picked(report, "machine", "engine", "web", "requests", "tickets"),
        "concurrency": most,
        "pages": pages,
    }


def _picked(of: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: of[name] for name in names}


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def keep(now: Kept) -> None:
    KEPT.write_text(json.dumps(now, indent=1) + "\n")


def kept() -> Kept:
    found: Kept = json.loads(KEPT.read_text())
    return found


def as_text(now: Kept, then: Kept) -> str:
    """Return what is compared, and a table of ratios."""
    about = "; ".join(str(then[name]) for name in ("commit", "date", "machine", "engine", "web"))
    pages = [_page(page, then["pages"].get(name, {})) for name, page in now["pages"].items()]
    return (
        f"Ratios to the last release: {about}; {then['tickets']} tickets, {then['concurrency']} at a time.\n\n"
        + table(["page", *_RATIOS.values()], pages)
    )


def _page(now: Kept, then: Kept) -> list[str]:
    """Return each figure over that of the release; a dash where one is missing or nothing."""
    ratios = (f"{now[name] / then[name]:.2f}" if then.get(name) and name in now else "-" for name in _RATIOS)
    return [now["title"], *ratios]
