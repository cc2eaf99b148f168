"""Say whose streams are followed: those of the tables of all, and those of each tenant that has tables of its own.

Consumers of a stream work inside its source. Requests then go to that tenant's tables, and stored and cached state of
the stream, such as its watermark, is separate from that of others. Which sources there are beside the pool is known to
packages above this one, which declare it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from django.conf import settings

from portal.dynamo import placement
from portal.dynamo.placement import POOL, Placement, at
from portal.errors import Invalid
from portal.isolation import guard
from portal.schema import keys as schema_keys
from portal.schema import registry
from portal.schema.registry import Table
from portal.streams.batch import Batch
from portal.streams.stored import own_stream_key

log = logging.getLogger("pooldesk.stream")


@dataclass(frozen=True)
class StreamSource:
    """The streams of the tables of all, or with a tenant's id those of its own tables at a placement."""

    tenant_id: str = ""
    placement: Placement = POOL

    def __str__(self) -> str:
        return f"tenant {self.tenant_id} on {self.placement}" if self.tenant_id else str(POOL)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Send requests inside to these tables, in the name of the tenant where they are one's own."""
        with at(self.placement):
            if not self.tenant_id:
                yield
                return
            with guard.acting_for(self.tenant_id):
                yield

    def name(self, table: Table) -> str:
        """Return the partition key of what is kept of a table's stream whatever ARN it has."""
        return own_stream_key(str(self.placement), self.tenant_id, table.name) if self.tenant_id else table.name


POOLED: Final = StreamSource()

_listings: list[Callable[[], Iterable[StreamSource]]] = []


def of(tenant_id: str, where: Placement) -> StreamSource:
    """Return the source that brings what is written for a tenant that lies there."""
    return POOLED if where == POOL else StreamSource(tenant_id, where)


def current() -> StreamSource:
    """Return the source inside of which this is called; the pool's outside of any."""
    where = placement.current()
    return POOLED if where == POOL else StreamSource(guard.current_tenant(), where)


def declare_listing(listing: Callable[[], Iterable[StreamSource]]) -> None:
    """Let this function say which sources there are beside the pool. It may raise Throttled and Unavailable."""
    _listings.append(listing)


def placed() -> list[StreamSource]:
    """Return the sources beside the pool, as they are listed now. Raises Throttled, Unavailable."""
    return list(dict.fromkeys(source for listing in _listings for source in listing()))


def of_tenant(tenant_id: str) -> list[StreamSource]:
    """Return the sources in which there may be something of a tenant's: the pool first. Raises what `placed` raises."""
    return [POOLED, *(source for source in placed() if source.tenant_id == tenant_id)]


def of_arn(stream_arn: str) -> StreamSource:
    """Return whose stream has this ARN, by the settings alone: a Lambda function is told nothing else.

    Raises Invalid for the stream of a tenant's own table that lies at none of the sites, or at one of several.
    """
    _, _, _, region, account, resource = (*stream_arn.split(":", 5), *[""] * 6)[:6]
    name = resource.split("/")[1] if resource.startswith("table/") else ""
    owned = registry.owner(name)
    if owned is None:
        return POOLED
    tenant_id, table = owned
    found = [
        site
        for site in ("", *settings.SILOS)
        if _lies_at(placement.site(site), region, account) and name == _name_at(site, tenant_id, table)
    ]
    if len(found) != 1:
        raise Invalid(f"The settings name {len(found)} sites at which the table {name} of {region} could lie, not one.")
    return StreamSource(tenant_id, Placement("silo", found[0]) if found[0] else Placement("bridge"))


def _name_at(site: str, tenant_id: str, table: Table) -> str:
    return registry.physical(placement.site(site).prefix, tenant_id, table)


def _lies_at(site: placement.Site, region: str, account: str) -> bool:
    of_role = site.tenant_role_arn.split(":")
    return site.region == region and (len(of_role) < 5 or of_role[4] == account)


def own(table: Table, batch: Batch) -> Batch:
    """Return the batch without records of another tenant, where it comes from the stream of one tenant's own table.

    Nobody can write another tenant's key into it; whoever did would reach, by the stream, what no request may reach.
    """
    tenant_id = current().tenant_id
    if not tenant_id:
        return batch
    records = [r for r in batch.records if schema_keys.belongs_to(tenant_id, str(r.keys.get(table.hash, "")))]
    strange = len(batch.records) - len(records)
    if strange:
        log.critical("%d records in the stream of tenant %s are of another, and passed over.", strange, tenant_id)
    return Batch(batch.stream_arn, batch.shard_id, tuple(records))
