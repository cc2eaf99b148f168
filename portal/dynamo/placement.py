"""Say where a tenant's content lies, and send each request there: the one place in which tables change their names.

Everything above speaks of a table by its declared name. Below it, where a request leaves, the name of a placed table
becomes that of the tenant's own where the tenant is not in the pool, and in the answer it becomes the declared one
again. Everything else stays in the pool: accounts, members, settings, keys, the audit trail.

Source: AWS, "SaaS Storage Strategies": pool, bridge and silo.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, Protocol

from django.conf import settings

from portal.errors import Conflict, Unavailable
from portal.isolation import guard, policies
from portal.schema import registry

Kind = Literal["pool", "bridge", "silo"]
KINDS: Final[tuple[Kind, ...]] = ("pool", "bridge", "silo")
_SITE: Final = re.compile(r"[a-z][a-z0-9-]{0,39}\Z")


@dataclass(frozen=True)
class Placement:
    """Where a tenant's content lies: in the tables of all, in tables of its own, or in those at a site of settings."""

    kind: Kind = "pool"
    site: str = ""  # of a silo: its name in settings.SILOS

    def __str__(self) -> str:
        return f"{self.kind}/{self.site}" if self.site else self.kind

    @property
    def in_words(self) -> str:
        """Return what is said behind "lies" and "is kept"."""
        return {"pool": "in the pool", "bridge": "in tables of its own", "silo": f"at {self}"}[self.kind]

    @classmethod
    def parse(cls, text: str | None) -> Placement:
        """Read what `str` makes; None and "" are the pool. Raises ValueError for anything else."""
        if not text or text == "pool":
            return POOL
        if text == "bridge":
            return cls("bridge")
        kind, _, site = text.partition("/")
        if kind != "silo" or not _SITE.match(site):
            raise ValueError("a placement is pool, bridge or silo/NAME")
        return cls("silo", site)


POOL: Final = Placement()
_current: ContextVar[Placement] = ContextVar("placement", default=POOL)


@contextmanager
def at(placement: Placement) -> Iterator[None]:
    """Send requests inside to where this placement is; in tables of a tenant's own, to those of who is acted for."""
    token = _current.set(placement)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Placement:
    """Return where requests are sent at this moment."""
    return _current.get()


class BeingMoved(Unavailable):
    """Writes of this tenant are held, because its content is being moved."""

    code = "being_moved"
    retry_after = 2

    def __init__(self) -> None:
        super().__init__("This desk is being moved to another place at this moment. Try again in some seconds.")


@dataclass(frozen=True)
class Move:
    """A move that is under way. `attempt` grows whenever a hold is broken: what was held by then is not any more."""

    id: str
    to: Placement
    attempt: int = 0


@dataclass(frozen=True)
class Location:
    """Where a tenant's content lies, where an old copy of it still does, and the move that is under way.

    Where it is `purged`, nothing may be written any more.
    """

    placement: Placement = POOL
    former: Placement | None = None
    epoch: int = 0
    move: Move | None = None
    purged: bool = False

    def refuse_purged(self) -> None:
        """Raise Conflict where the tenant is being purged: what was written now might be found by nobody."""
        if self.purged:
            raise Conflict("This desk is being deleted. Nothing can be written to it any more.")


class LocationSource(Protocol):
    """Know where a tenant's content lies, never by an answer that is too old.

    A job that changes the location waits until no process can use the old answer. A request that still arrives late is
    refused by a fence, reads the location again, and is sent there.
    """

    def current(self) -> Location:
        """Return where it lies, read anew where the last answer is too old."""

    def again(self) -> Location:
        """Read it anew, and return it."""

    def break_hold(self, seen: Location) -> None:
        """Let writes pass that the move that was seen holds, unless it has ended."""


@dataclass(frozen=True)
class StatedLocation:
    """A fixed location; the caller guarantees that no move runs."""

    where: Location

    def current(self) -> Location:
        return self.where

    again = current

    def break_hold(self, seen: Location) -> None:
        """Raise BeingMoved: nothing is known of what holds the write."""
        raise BeingMoved


@dataclass(frozen=True)
class Site:
    """An account or region in which silos lie. No endpoint stands for Amazon DynamoDB's in that region.

    A role is assumed where its ARN is given, else the process signs for itself. Tables that are made there are
    encrypted with a key where one is given, else with the account's own for DynamoDB.
    """

    region: str
    prefix: str
    endpoint_url: str = ""
    sts_endpoint_url: str = ""
    tenant_role_arn: str = ""
    worker_role_arn: str = ""
    platform_role_arn: str = ""
    table_key_arn: str = ""
    table_quota: str = ""  # tables that its account may have in its region, where that is not as at home


def site(name: str) -> Site:
    """Return a site by its name, "" for home. Raises Unavailable for one that the settings do not have."""
    if not name:
        return Site(
            settings.AWS_REGION,
            settings.DYNAMODB_TABLE_PREFIX,
            settings.DYNAMODB_ENDPOINT_URL,
            settings.STS_ENDPOINT_URL,
            settings.TENANT_ROLE_ARN,
        )
    stated = settings.SILOS.get(name)
    if stated is None:
        raise Unavailable(f"The settings (SILOS) have no site with the name {name}.")
    defaults = {"region": settings.AWS_REGION, "prefix": settings.DYNAMODB_TABLE_PREFIX}
    return Site(**{**defaults, "sts_endpoint_url": stated.get("endpoint_url", ""), **stated})


def faults_of_settings() -> Iterator[str]:
    """Yield a sentence for each site or plan of the settings that no tenant could be placed by."""
    known = {field.name for field in fields(Site)}
    taken = {_where(site("")): "home"}
    for name, stated in settings.SILOS.items():
        if not _SITE.match(name):
            yield f"SILOS names a site {name!r}; use 1-40 lowercase letters, digits or hyphens, a letter first."
        elif unknown := sorted(set(stated) - known):
            yield f"The site {name} of SILOS has {unknown[0]!r}, which is nothing that a site has."
        elif not str(stated.get("table_quota", "0")).isdecimal():
            yield f"The table_quota of the site {name} of SILOS is a number, such as 10000."
        elif len(site(name).prefix) > policies.longest_prefix():
            yield f"The prefix of the site {name} leaves no room for the names of tables."
        elif (other := taken.setdefault(_where(site(name)), name)) != name:
            # Who moves a tenant from one to the other has its tables deleted with the old copy: they are the same.
            yield f"The site {name} of SILOS has the same tables as {other}; give it a prefix of its own."
    for plan, text in settings.PLAN_PLACEMENTS.items():
        try:
            placed = Placement.parse(text)
        except ValueError:
            yield f"PLAN_PLACEMENTS places {plan} on {text!r}; use pool, bridge or silo/NAME."
        else:
            if placed.site and placed.site not in settings.SILOS:
                yield f"PLAN_PLACEMENTS places {plan} on {text}, and SILOS has no such site."


def _where(site: Site) -> tuple[str, ...]:
    """Return what tells the tables of one site from those of another: nobody's role is the account of this process."""
    account = site.tenant_role_arn.split(":")[4:5] or [settings.AWS_ACCOUNT_ID]
    return (site.endpoint_url, site.region, site.prefix, *account)


def table_name(declared: str) -> str:
    """Return what a table of this declared name is called where requests are sent at this moment."""
    return _renaming([declared]).get(declared, declared)


def _placed() -> dict[str, Any]:
    return {table.name: table for table in registry.placed_tables()}


def _renaming(names: Iterable[str]) -> dict[str, str]:
    """Return the tables of the tenant's own by the declared names, of those names that are placed."""
    where = current()
    if where.kind == "pool":
        return {}
    prefix, home, placed = site(where.site).prefix, f"{settings.DYNAMODB_TABLE_PREFIX}.", _placed()
    found = {name: placed[name.removeprefix(home)] for name in names if name.removeprefix(home) in placed}
    return {name: registry.physical(prefix, guard.current_tenant(), table) for name, table in found.items()}


# --- one request ---

Params = dict[str, Any]


def _unchanged(answer: Params) -> Params:
    return answer


@dataclass(frozen=True)
class Addressed:
    """A request as it is sent: to which site, "" for home, with which parameters, and how its answer is read."""

    site: str
    params: Params
    read: Callable[[Params], Params] = _unchanged


def addressed(params: Params) -> Addressed:
    """Address a request for where its tenant's content lies. It goes home where it names no placed table.

    Raises ValueError where it names tables of a silo beside others: no request spans accounts or regions.
    """
    where = current()
    if where.kind == "pool":
        return Addressed("", params)
    names = _names(params)
    renaming = _renaming(names)
    if not renaming:
        # What names no table at all, such as an iterator of a stream, goes where one is.
        return Addressed("" if names else where.site, params)
    if where.site and len(renaming) < len(names):
        raise ValueError("a request to a silo names a table that is not there")
    return Addressed(where.site, _renamed(params, renaming), lambda answer: _restored(answer, renaming))


def _names(params: Params) -> set[str]:
    names = {body["TableName"] for member in params.get("TransactItems") or () for body in member.values()}
    names |= set(params.get("RequestItems") or ())
    return names | ({params["TableName"]} if "TableName" in params else set())


def _renamed(params: Params, renaming: dict[str, str]) -> Params:
    changed = _of_table(params, renaming)
    if "RequestItems" in params:
        changed["RequestItems"] = _by_names(params["RequestItems"], renaming)
    if "TransactItems" in params:
        changed["TransactItems"] = [
            {kind: _of_table(body, renaming) for kind, body in member.items()} for member in params["TransactItems"]
        ]
    return changed


def _restored(answer: Params, renaming: dict[str, str]) -> Params:
    declared = {physical: name for name, physical in renaming.items()}
    changed = dict(answer)
    for part in ("Responses", "UnprocessedKeys", "UnprocessedItems"):
        if isinstance(answer.get(part), dict):
            changed[part] = _by_names(answer[part], declared)
    consumed = answer.get("ConsumedCapacity")
    if isinstance(consumed, dict):
        changed["ConsumedCapacity"] = _of_table(consumed, declared)
    elif consumed:
        changed["ConsumedCapacity"] = [_of_table(entry, declared) for entry in consumed]
    return changed


def _by_names(parts: dict[str, Any], naming: dict[str, str]) -> dict[str, Any]:
    return {naming.get(name, name): part for name, part in parts.items()}


def _of_table(entry: Params, naming: dict[str, str]) -> Params:
    name = entry.get("TableName")
    return {**entry, "TableName": naming.get(name, name)} if name else dict(entry)
