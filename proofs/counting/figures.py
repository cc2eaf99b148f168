"""The figures of a torture."""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from typing import Any

from proofs.counting.experiment import Torture
from tickets.verification import verify

LARGE = 100  # events of a batch from which on its cost per event is counted


def document(run: Torture) -> dict[str, Any]:
    """Return everything that was counted, ready for JSON."""
    batches, repaired = list(run.batches()), run.repaired()
    first = [b for b in batches if b["way"] == "first"]
    again = [b for b in batches if b["way"] not in ("first", "zombie")]
    # What a batch cost, by the changes that it was the first to count.
    costs = [(b["applied"], b["units"]) for b in batches]
    of_one = [(n, units) for b in first if b["applied"] == b["events"] for n, units in b["large"]]
    lags = sorted(lag for b in first for lag in b["lags"])
    applying = sum(b["seconds"] for b in batches) or 1
    verdicts = {**run.verdicts, **{f"{slug} (emptied)": v for slug, v in run.left.items()}}
    drift = {slug: [asdict(d) for d in v.differences] for slug, v in verdicts.items() if v.state == verify.DRIFT}
    return {
        "plan": asdict(run.plan),
        "tenants": len(run.tenants),
        "tickets": sum(v.tickets for v in run.verdicts.values()),
        "events": run.written(),
        "events_written_per_second": round(run.written() / (run.seconds.get("writing") or 1)),
        "events_applied": sum(b["events"] for b in batches),
        "events_applied_per_second": round(sum(b["events"] for b in batches) / applying),
        "batches": len(first),
        "redeliveries": len(again),
        "events_redelivered": sum(b["events"] for b in again),
        "batches_of_zombies": sum(b["way"] == "zombie" for b in batches),
        "kills": run.kills,
        "killed_between_writes": run.killed_between_writes,
        "thefts": run.thefts,
        "cuts": dict(run.stream.cuts) if run.stream else {},
        "shards_left_alone": run.uncut,
        "rebuilds": sum("removed" in line for line in repaired),
        "verifications": sum("state" in line for line in repaired),
        "repairs_that_gave_up": [line["failed"] for line in repaired if "failed" in line],
        "taken_away_or_called_wrong": [
            one for line in repaired for one in (*line.get("removed", ()), *line.get("differences", ()))
        ],
        "dead_letters": sum(b["dead"] for b in first),
        "write_units_per_event": _per_event(costs),
        "write_units_per_event_in_batches_of_100": _per_event([pair for pair in costs if pair[0] >= LARGE]),
        "write_units_per_event_of_one_tenant_with_100_in_a_batch": _per_event(of_one),
        "lag_ms": {"median": round(median(lags)), "max": lags[-1]} if lags else None,
        "seconds": {name: round(seconds, 1) for name, seconds in run.seconds.items()},
        "cannot_be_told": {slug: v.why for slug, v in verdicts.items() if v.state == verify.UNKNOWN},
        "drift": drift,
    }


def _per_event(pairs: list[tuple[int, float]]) -> float | None:
    """Write units by events, of pairs of both."""
    events = sum(n for n, _ in pairs)
    return round(sum(units for _, units in pairs) / events, 3) if events else None


def _cuts(found: dict[str, Any]) -> str:
    if found["shards_left_alone"]:
        return f"none cut, because {found['shards_left_alone']}"
    return ", ".join(f"{kind} {n}" for kind, n in sorted(found["cuts"].items())) or "none cut"


def sentences(found: dict[str, Any]) -> list[str]:
    """Return the same for people."""
    lag, cost = found["lag_ms"], found["write_units_per_event_in_batches_of_100"]
    one = found["write_units_per_event_of_one_tenant_with_100_in_a_batch"]
    spent = ", ".join(f"{name} {seconds:g} s" for name, seconds in found["seconds"].items())
    return [
        f"{found['events']:,} events on {found['tickets']:,} tickets of {found['tenants']} tenants, "
        f"{found['events_written_per_second']:,}/s written; {spent}.",
        f"{found['events_applied']:,} applied in {found['batches']:,} batches and {found['redeliveries']:,} "
        f"redeliveries of {found['events_redelivered']:,} events, {found['events_applied_per_second']:,}/s.",
        f"{found['kills']} kills, {found['killed_between_writes']} of them between two writes of a batch; "
        f"{found['rebuilds']} rebuilds and {found['verifications']} verifications while all of that went on, "
        f"{len(found['repairs_that_gave_up'])} gave up, {len(found['taken_away_or_called_wrong'])} counts touched; "
        f"{found['thefts']} thefts, {found['batches_of_zombies']:,} batches applied without a lease.",
        f"Of the stream's shards: {_cuts(found)}.",
        f"Write units per event: {found['write_units_per_event']}; in batches of 100 and more {cost}; of one tenant "
        f"with 100 and more in a batch {one}.",
        f"Lag: median {lag['median']:,} ms, maximum {lag['max']:,} ms." if lag else "Lag: nothing was applied.",
        f"Dead letters: {found['dead_letters']}. Drift: {sum(map(len, found['drift'].values()))} counts.",
    ]
