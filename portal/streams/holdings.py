"""Declare what is kept of the streams of a tenant's own tables; that of the stream of all is nobody's."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings

from portal.dynamo.placement import Placement
from portal.schema import placed_names
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from portal.streams import keys
from portal.streams.tables import LEASES


def _followed(reader: Reader) -> Iterator[StoredItem]:
    """Find leases, finished shards and heartbeats by the notes of which streams were followed, which come last."""
    places = [Placement("bridge"), *(Placement("silo", site) for site in settings.SILOS)]
    for name in (
        keys.own_stream(str(place), reader.tenant_id, table.name)
        for place in places
        for table in placed_names.placed_tables()
        if table.stream
    ):
        noted = list(reader.query(LEASES, name))
        for stream_arn in (one.item["shard"]["S"] for one in noted):
            for partition in keys.of_stream(stream_arn) if stream_arn != keys.WATERMARK else ():
                yield from reader.query(LEASES, partition)
        yield from noted


declare_holding(
    Holding("followed streams", (LEASES,), _followed, Stage.BESIDE, left_out="elsewhere its tables have other streams")
)
