"""Send the attempts of a run through the real layers, and say which layer refused each.

Guarded attempts leave by the client that the portal itself uses. Where tenants have a role, each REACHES_IAM-th attempt
leaves by a client without a guard, which can sign for nobody but the attacker: so IAM is tried alone. Anything but a
refusal is a crossing, an error behind the guard as well: by then the guard has let it through.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings

from portal.dynamo import client, placement
from portal.dynamo.library_errors import LIBRARY_ERRORS, is_denied, translate
from portal.dynamo.models import RawItems
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.store import ForeignKey, Store
from portal.dynamo.tenant_reader import TenantReader
from portal.errors import Throttled, Unavailable
from portal.isolation import guard, policies
from portal.schema import holdings, registry
from portal.schema.registry import Table
from tickets.isolation_runs.attempts import AttemptDraw, IsolationAttempt, KindOfKey, Raw, Request, RunPlan, text_of

# The letters of the answers, as they are stored.
KEYS, GUARD, IAM, CROSSED = "k", "g", "i", "X"
REACHES_IAM: Final = 5
_SAMPLES: Final = 3  # keys of each kind
_LOOKED_AT: Final = 400  # items of each holding, for those three and the keys of indexes
_READS: Final = 40  # requests to find them, for each holding: one with none may have to look through many tickets
_MADE_UP: Final = "none"


class _Enough(Exception):
    """A holding was looked for long enough."""


@dataclass(frozen=True)
class Samples:
    """Keys of a desk by their kind. A kind that the desk has nothing of has one key, which is made up."""

    of: Mapping[KindOfKey, Sequence[tuple[Raw, Placement]]]
    filled: frozenset[KindOfKey]

    def digits(self, kinds: Sequence[KindOfKey]) -> str:
        return "".join(str(int(kind in self.filled)) for kind in kinds)


@dataclass(frozen=True)
class OwnAnswers:
    """Count the requests of the desk itself for its own items: those asked, those answered, and whether one was
    refused."""

    asked: int
    answered: int
    refused: bool


def sample(kinds: Sequence[KindOfKey], desk: str, where: Placement, *, between: Callable[[], object]) -> Samples:
    """Read a few keys of each kind: at most _READS requests for each holding. `between` is called before each."""
    found: dict[KindOfKey, list[tuple[Raw, Placement]]] = {kind: [] for kind in kinds}
    by_name = {one.name: one for one in holdings.holdings()}
    for kind in kinds:
        if kind.table is None or kind.holding not in by_name:
            continue
        # Not each item has the keys of each index: an index is looked for among several.
        within = [(one, {one.index.hash, one.index.range}) for one in kinds if one.index and one.table == kind.table]
        for item, at in islice(_few(by_name[kind.holding], kind.table, desk, where, between), _LOOKED_AT):
            for one in (kind, *(index for index, names in within if names <= item.keys())):
                if len(found[one]) < _SAMPLES:
                    found[one].append((item, at))
    filled = frozenset(kind for kind, some in found.items() if some)
    return Samples({kind: found[kind] or [(_made_up(kind, desk), POOL)] for kind in kinds}, filled)


def _few(
    holding: holdings.Holding, table: Table, desk: str, where: Placement, between: Callable[[], object]
) -> Iterator[tuple[Raw, Placement]]:
    """Yield the keys of a holding's items in a table, and where each lies."""
    left = _READS

    def look() -> None:
        nonlocal left
        between()
        left -= 1
        if left < 0:
            raise _Enough

    # What lies in the pool beside a desk that has tables of its own is a few things; they are found there.
    names = {*table.key_names, *(name for index in table.indexes for name in (index.hash, index.range))}
    with suppress(_Enough):
        for stored in holding.find(TenantReader(desk, where, between=look)):
            if stored.table == table:
                key = {name: value for name, value in stored.item.items() if name in names}
                yield key, Placement.parse(stored.placement)


def _made_up(kind: KindOfKey, desk: str) -> Raw:
    table = kind.table
    if table is None:
        return {}
    pattern = table.leading_keys if table.scope == "tenant" else "{tenant}"
    made = {name: {"S": _MADE_UP} for name in table.key_names} | {table.hash: {"S": _filled_in(pattern, desk)}}
    if kind.index is not None:
        made[kind.index.range] = {"S": _MADE_UP}
        made[kind.index.hash] = {"S": _filled_in(kind.index.leading_keys, desk) or _MADE_UP}
    return made


def _filled_in(pattern: str, desk: str) -> str:
    return pattern.replace("{tenant}", desk).replace("*", "NONE")


def ask_as_the_desk(samples: Samples, desk: str, where: Placement, *, between: Callable[[], object]) -> OwnAnswers:
    """Read one item of each kind in the desk's own name, where its role may: layers that refuse everybody prove
    nothing. Items that are gone meanwhile are asked for, and not answered."""
    policy, store = policies.Policy(policies.document("tenant")), Store("tenant", desk, where)
    asked = answered = 0
    for kind in samples.filled:
        table, (item, _) = kind.table, samples.of[kind][0]
        if table is None or kind.index is not None or table.scope != "tenant":
            continue
        key = text_of(item, table.hash)
        if not policy.allows(_reading(table, key, desk)):
            continue
        between()
        asked += 1
        try:
            sort = text_of(item, table.range) if table.range else None
            answered += store.get_many(RawItems(table), [(key, (), sort)])[0] is not None
        except guard.IsolationError:
            return OwnAnswers(asked, answered, refused=True)
    return OwnAnswers(asked, answered, refused=False)


def _reading(table: Table, key: str, desk: str) -> policies.Request:
    return policies.Request("dynamodb:BatchGetItem", policies.table_arn(table.full_name), (key,), desk)


def engine() -> str:
    """Return the database as a report names it."""
    where = urlsplit(settings.DYNAMODB_ENDPOINT_URL)
    return f"{where.hostname}:{where.port}" if where.hostname else f"Amazon DynamoDB, {settings.AWS_REGION}"


def is_held_by_iam(site: str = "") -> bool:
    """Tell whether tenants have a role there, and the database is one that asks IAM: others check no credentials."""
    where = placement.site(site)
    host = urlsplit(where.endpoint_url).hostname or ""
    return bool(where.tenant_role_arn) and (not host or host.endswith((".amazonaws.com", ".amazonaws.com.cn")))


class Attack:
    """Sends the attempts of one run. Make it inside of `quiet`."""

    def __init__(self, plan: RunPlan, samples: Samples, *, desk: str, attacker: str) -> None:
        self._plan, self._samples, self._desk, self._attacker = plan, samples, desk, attacker
        self._alone: dict[str, Any] = {}  # clients without a guard, by their sites

    def answer(self, number: int) -> str:
        """Make one attempt and return the letter of what refused it, or CROSSED.

        Raises Unavailable and Throttled where IAM could not be asked.
        """
        attempt = self._plan.attempt(number)
        draw, site = self._draw(attempt)
        trick = attempt.trick
        if trick.call is not None:
            return self._call(lambda: trick.call(draw))  # type: ignore[misc]  # it is no None
        assert trick.request is not None  # noqa: S101  # a trick has one of both
        request = trick.request(draw)
        if number % REACHES_IAM == 0 and is_held_by_iam(site):
            return self._to_iam(request, site)
        # Made before the attempt: what fails from here on has failed behind the guard.
        sender = client.connection("tenant").client_at(site)
        return self._call(lambda: sender._make_api_call(*request))

    def _draw(self, attempt: IsolationAttempt) -> tuple[AttemptDraw, str]:
        kind, several = attempt.kind, self._samples.of[attempt.kind]
        item, where = several[attempt.turn % len(several)]
        name, site, prefix = "", "", ""
        if kind.table is not None:
            name = kind.table.full_name
            if kind.table.placed and where != POOL:
                site = where.site
                name = registry.physical(placement.site(site).prefix, self._desk, kind.table)
        else:
            (begins,) = [one.objects for one in holdings.holdings() if one.name == kind.holding]
            prefix = begins(self._desk) if begins else ""
        return AttemptDraw(kind, item, name, self._desk, self._attacker, prefix), site

    def _call(self, call: Callable[[], object]) -> str:
        try:
            with guard.acting_for(self._attacker), placement.at(POOL):
                call()
        except guard.IsolationError:
            return GUARD
        except ForeignKey:
            return KEYS
        except (*LIBRARY_ERRORS, Unavailable, Throttled) as error:
            return self._behind(error) if not settings.DYNAMODB_GUARD else CROSSED
        except Exception:  # whatever it is, it came from behind the guard
            return CROSSED
        return CROSSED

    def _to_iam(self, request: Request, site: str) -> str:
        if site not in self._alone:
            self._alone[site] = client.make_client_for_one(self._attacker, site)
        try:
            self._alone[site]._make_api_call(*request)
        except LIBRARY_ERRORS as error:
            return self._behind(error)
        return CROSSED

    def _behind(self, error: Exception) -> str:
        """Return what an error from behind the guard stands for: a refusal by IAM, or a crossing."""
        if is_denied(error):
            return IAM
        ours = error if isinstance(error, Unavailable | Throttled) else translate(error, "an attempt")
        if isinstance(ours, Unavailable | Throttled):
            raise ours from error
        return CROSSED


@contextmanager
def quiet(attacker: str) -> Iterator[None]:
    """Leave refusals of this attacker out of the security log, and of nobody else: they are no events."""

    def is_event(record: logging.LogRecord) -> bool:
        return not (isinstance(record.args, tuple) and attacker in record.args)

    guard.log.addFilter(is_event)
    try:
        yield
    finally:
        guard.log.removeFilter(is_event)
