"""Keep the result of each restore drill in the platform's own audit trail, and read the latest one.

No tenant is named: owners see the latest result in their monthly letter.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from portal import clock
from portal.dynamo.platform import PLATFORM
from tenants.audit_trail import browsing, recording, stored
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.audit_trail.stored import AuditByEntity


class DrillResult(StrEnum):
    RIGHT = "right"
    WRONG = "wrong"
    UNKNOWN = "unknown"  # something could not be determined


@dataclass(frozen=True)
class Drill:
    """A drill that has verified what it restored. `took` is its RTO and `lost` its RPO, in seconds; `lost` is "" on an
    engine without backups."""

    result: DrillResult
    tables: int
    trails: int
    tenants: int
    tickets: int
    took: float
    lost: float | str = ""


def record(drill: Drill, *, by: Actor) -> None:
    """Add a row to the platform's trail. Raises Throttled, Unavailable."""
    kind, name = stored.RESTORE_DRILL
    recording.record(
        AuditEntry(recording.PLATFORM, AuditAction.RESTORE_DRILLED, by, kind, name, "all tables", after=asdict(drill))
    )


def latest(*, before: datetime) -> tuple[datetime, Drill] | None:
    """Return the last drill before a moment, and when it ended: one Query of one row."""
    until = ("0", clock.stamp(before))
    found = PLATFORM.query(AuditByEntity, stored.RESTORE_DRILLS, between=until, descending=True, limit=1).items
    if not found:
        return None
    row = browsing.row_of(found[0])
    told = row.after
    counts = {name: int(told[name]) for name in ("tables", "trails", "tenants", "tickets")}
    lost = float(told["lost"]) if told["lost"] else ""
    return row.at, Drill(DrillResult(told["result"]), **counts, took=float(told["took"]), lost=lost)
