"""List when operators acted as members of a tenant: from its audit trail, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from portal import clock
from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailFilter, TrailRow
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import AuditAction
from tenants.impersonation.impersonating import ENTITY, WRITING
from tenants.tenancy.context import TenantContext


@dataclass(frozen=True)
class PlatformVisit:
    """One time that an operator acted as a member, or without a `member` looked at the desk's content in the admin.

    `ended_at` is None where it ran out, or still goes on.
    """

    began_at: datetime
    operator: str
    member: str
    reason: str
    may_write: bool
    until: datetime
    ended_at: datetime | None

    @property
    def goes_on(self) -> bool:
        return self.ended_at is None and self.until > clock.now()


@dataclass(frozen=True)
class PlatformVisits:
    """A page of visits. `next` is the cursor to older ones, None at the end."""

    visits: list[PlatformVisit]
    next: str | None


def page(tenant: TenantContext, *, after: str | None = None) -> PlatformVisits:
    """Return a page of visits: one Query. Raises Invalid for a cursor of another list."""
    trail = browsing.page(
        tenant.repository, only=TrailFilter(entity=ENTITY), after=after, erased=ErasedPeople.parse(tenant.erased)
    )
    ends = {row.after.get("visit"): row.at for row in trail.rows if row.action == AuditAction.IMPERSONATION_ENDED}
    begun = [row for row in trail.rows if row.action in (AuditAction.IMPERSONATION_BEGUN, AuditAction.CONTENT_OPENED)]
    return PlatformVisits([_visit(row, ends.get(row.after.get("visit", row.id))) for row in begun], trail.next)


def _visit(row: TrailRow, ended_at: datetime | None) -> PlatformVisit:
    told = row.after
    return PlatformVisit(
        began_at=row.at,
        operator=row.actor,
        member=row.entity if row.action == AuditAction.IMPERSONATION_BEGUN else "",
        reason=told["reason"],
        may_write=told.get("rights") == WRITING,
        until=clock.parse(told["until"]),
        ended_at=ended_at,
    )
