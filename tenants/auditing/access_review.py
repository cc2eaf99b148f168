"""Review who may do what at a desk, since when, and by whom: members, auditors, API keys and operators.

A page of members costs the same for any number of them: one Query for the members, and at the same time for each of
these one Query of the newest rows that the audit trail has about them. The review of an export is made of the whole
trail, which the export reads anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.paging import Pager
from portal.dynamo.store import Store
from portal.schema import keys
from tenants.api_keys import key_changes
from tenants.api_keys.stored import ApiKeyItem
from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailFilter, TrailRow
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import AuditAction
from tenants.impersonation import impersonating
from tenants.impersonation.impersonating import PlatformVisit
from tenants.membership import auditors
from tenants.membership.stored import MEMBERS, AuditorItem, MemberItem
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy.context import Role, TenantContext

PAGE_SIZE: Final = 10  # members; each costs the page some two units, and the file has them all
_ROWS: Final = 100  # of the trail that are read about a member of a page
_GRANTS: Final = (AuditAction.MEMBER_ADDED, AuditAction.INVITATION_ACCEPTED, AuditAction.MEMBER_ROLE_CHANGED)
_LIST: Final = ("access review",)
Row = dict[str, str]  # of an export: all values are text


@dataclass(frozen=True)
class MemberAccess:
    """The rights of a member. `granted_at` and `granted_by` say since when, and who gave the role: None and "" where
    the rows that were read do not tell. `entered_at` is the last sign-in to the desk among those rows. `all_read` tells
    whether these were all rows about the person, so that None means that there was none."""

    id: str
    name: str
    email: str
    role: Role
    joined_at: datetime
    granted_at: datetime | None
    granted_by: str
    has_second_factor: bool
    entered_at: datetime | None
    all_read: bool


@dataclass(frozen=True)
class AuditorAccess:
    """The access of an auditor, with the account's second factor and last sign-in as of members."""

    item: AuditorItem
    has_second_factor: bool
    entered_at: datetime | None
    all_read: bool


@dataclass(frozen=True)
class Review:
    """A page of members, by their ids, with the latest of all others who may do something. `next` is the cursor of the
    next page of members, None at the end."""

    members: list[MemberAccess]
    next: str | None
    auditors: list[AuditorAccess]
    keys: list[ApiKeyItem]
    visits: list[PlatformVisit]


def page(tenant: TenantContext, *, after: str | None = None) -> Review:
    """Return a page of the review: two round trips, and a third one where the grant is not among the newest rows of
    somebody. Raises Invalid for a cursor of another list."""
    repository, pager = tenant.repository, Pager(tenant.tenant_id, _LIST)
    start = None
    if after:
        behind = str(pager.place(after, size=1).position[0])
        start = {MEMBERS.hash: {"S": tenant.tenant_id}, MEMBERS.range or "": {"S": behind}}
    reads: list[Any] = [
        partial(repository.query, MemberItem, keys.tenant, limit=PAGE_SIZE, start=start),
        partial(auditors.listed, repository),
        partial(key_changes.listed, repository),
        partial(impersonating.visits_page, tenant),
    ]
    found, outsiders, api_keys, visits = fan_out(reads)
    ids = [item.user_id for item in found.items]
    links = pager.links(None, begin=ids[:1], end=ids[-1:], more=found.last_key is not None)
    working = [key for key in api_keys if key_changes.works(key)]
    known, rows = _accounts_and_rows(tenant, [*found.items, *outsiders])
    audits = [_auditor(one, known.get(one.user_id), _Grants.of(rows[one.user_id])) for one in outsiders]
    return Review(_members(tenant, found.items, known, rows), links.next, audits, working, visits.visits)


Accounts = Mapping[str, User | None]
RowsOf = Mapping[str, list[TrailRow]]  # by user ids, newest first


def _accounts_and_rows(tenant: TenantContext, items: Sequence[Any]) -> tuple[Accounts, RowsOf]:
    """Return the accounts of these people, and the newest rows about each."""
    erased, ids = ErasedPeople.parse(tenant.erased), [item.user_id for item in items]
    if not ids:
        return {}, {}
    reads: list[Any] = [partial(_newest, tenant.repository, one, erased) for one in ids]
    known, *rows = fan_out([partial(accounts.find_all, ids), *reads])
    return known, dict(zip(ids, rows, strict=True))


def _members(tenant: TenantContext, items: Sequence[MemberItem], known: Accounts, rows: RowsOf) -> list[MemberAccess]:
    erased, grants = ErasedPeople.parse(tenant.erased), [_Grants.of(rows[item.user_id]) for item in items]
    unknown = [at for at, one in enumerate(grants) if one.granted is None]
    asked = [(at, about) for at in unknown for about in _giving(items[at])]
    told = fan_out([partial(_when_joined, tenant.repository, items[at], about, erased) for at, about in asked])
    for (at, _about), given in zip(asked, told, strict=True):
        grants[at].grant(given, items[at])
    return [_access(item, known.get(item.user_id), one) for item, one in zip(items, grants, strict=True)]


def _auditor(item: AuditorItem, account: User | None, grants: _Grants) -> AuditorAccess:
    has_factor = bool(account is not None and account.second_factors)
    return AuditorAccess(item, has_factor, grants.entered.at if grants.entered else None, grants.all_read)


def _newest(repository: Store, user_id: str, erased: ErasedPeople) -> list[TrailRow]:
    return browsing.page(repository, only=TrailFilter(entity=("user", user_id)), size=_ROWS, erased=erased).rows


def _giving(item: MemberItem) -> list[tuple[str, str]]:
    """Return the entities whose rows can tell who gave the role: the person, and for an owner the desk."""
    of_desk = [("tenant", item.tenant_id)] if item.role == Role.OWNER else []
    return [("user", item.user_id), *of_desk]


def _when_joined(repository: Store, item: MemberItem, about: tuple[str, str], erased: ErasedPeople) -> list[TrailRow]:
    day = clock.parse(item.created_at).date()
    only = TrailFilter(entity=about, first=day, last=day)
    return browsing.page(repository, only=only, size=_ROWS, erased=erased).rows


class _Grants:
    """Collects, of rows of one member newest first, who gave the role, and the last sign-in."""

    def __init__(self) -> None:
        self.granted: TrailRow | None = None
        self.entered: TrailRow | None = None
        self.all_read = True

    @classmethod
    def of(cls, rows: Iterable[TrailRow]) -> _Grants:
        found = cls()
        for number, row in enumerate(rows, 1):
            found.all_read = number < _ROWS
            if row.action in _GRANTS:
                found.granted = found.granted or row
            elif row.action == AuditAction.SESSION_STARTED:
                found.entered = found.entered or row
        return found

    def grant(self, rows: Iterable[TrailRow], item: MemberItem) -> None:
        """Take the row that gave this role, or that created the desk with its first owner. Where the role was changed
        between the rows that were read, it is not known by whom."""
        for row in rows:
            is_first = row.action == AuditAction.TENANT_CREATED and row.after.get("owner") == item.email
            if is_first or (row.action in _GRANTS and row.after.get("role") == item.role):
                self.granted = self.granted or row


def _access(item: MemberItem, account: User | None, grants: _Grants) -> MemberAccess:
    granted = grants.granted
    return MemberAccess(
        id=item.user_id,
        name=item.name,
        email=item.email,
        role=Role(item.role),
        joined_at=clock.parse(item.created_at),
        granted_at=granted.at if granted else None,
        granted_by=(granted.after.get("invited_by") or granted.by) if granted else "",
        has_second_factor=bool(account is not None and account.second_factors),
        entered_at=grants.entered.at if grants.entered else None,
        all_read=grants.all_read,
    )


class ReviewOfTrail:
    """Makes the review of an export: it is shown each row of the trail, oldest first, and has then what rows tell."""

    def __init__(self) -> None:
        self._latest: dict[str, dict[bool, TrailRow]] = {}
        self._created: TrailRow | None = None

    def see(self, row: TrailRow) -> None:
        """Take a row. Memory grows with the people whom the trail names."""
        is_grant = row.action in _GRANTS
        if row.entity_type == "user" and (is_grant or row.action == AuditAction.SESSION_STARTED):
            self._latest.setdefault(row.entity_id, {})[is_grant] = row
        elif row.action == AuditAction.TENANT_CREATED:
            self._created = row

    def grants(self, item: MemberItem | AuditorItem) -> _Grants:
        found = _Grants.of(self._latest.get(item.user_id, {}).values())
        if isinstance(item, MemberItem) and item.role == Role.OWNER and self._created is not None:
            found.grant([self._created], item)
        return found

    def members(self, tenant: TenantContext) -> Iterator[MemberAccess]:
        for found in tenant.repository.query_pages(MemberItem, keys.tenant, consistent=True, limit=100):
            known = accounts.find_all([item.user_id for item in found.items])
            for item in found.items:
                yield _access(item, known.get(item.user_id), self.grants(item))


COLUMNS: Final = (
    "kind",
    "name",
    "address",
    "may",
    "since (UTC)",
    "by",
    "until (UTC)",
    "second factor",
    "last used (UTC)",
)


def rows_of(tenant: TenantContext, review: ReviewOfTrail) -> Iterator[Row]:
    """Yield who may do what, each as one row of the COLUMNS."""
    for one in review.members(tenant):
        since, factor = one.granted_at or one.joined_at, "yes" if one.has_second_factor else "no"
        yield _row("member", one.name, one.email, one.role.value, since, one.granted_by, None, factor, one.entered_at)
    outsiders = auditors.listed(tenant.repository)
    known = accounts.find_all([auditor.user_id for auditor in outsiders])
    for auditor in outsiders:
        begun, ends = clock.parse(auditor.begun_at), clock.parse(auditor.ends_at)
        may = f"auditor: {auditor.purpose}"
        access = _auditor(auditor, known.get(auditor.user_id), review.grants(auditor))
        by, factor = auditor.invited_by_name, "yes" if access.has_second_factor else "no"
        yield _row("auditor", auditor.name, auditor.email, may, begun, by, ends, factor, access.entered_at)
    for key in key_changes.listed(tenant.repository):
        ends_at, used = key.revoked_at or key.expires_at, key.last_used_at
        until, last = (clock.parse(at) if at else None for at in (ends_at, used))
        made = clock.parse(key.created_at)
        yield _row("API key", key.name, "", ", ".join(key.scopes), made, key.created_by, until, "", last)
    after, is_first = None, True
    while after or is_first:
        found = impersonating.visits_page(tenant, after=after)
        for visit in found.visits:
            acted = f"acted as {visit.member}" if visit.member else "could read the content"
            until = visit.ended_at or visit.until
            yield _row("operator", visit.operator, "", f"{acted}: {visit.reason}", visit.began_at, "", until, "", None)
        after, is_first = found.next, False


def _row(
    kind: str,
    name: str,
    address: str,
    may: str,
    since: datetime,
    by: str,
    until: datetime | None,
    factor: str,
    last: datetime | None,
) -> Row:
    values: Sequence[Any] = (kind, name, address, may, since, by, until, factor, last)
    texts = [clock.stamp(one) if isinstance(one, datetime) else one or "" for one in values]
    return dict(zip(COLUMNS, texts, strict=True))


def as_cells(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in COLUMNS)
