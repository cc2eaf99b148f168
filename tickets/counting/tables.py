"""Declare the table of dead letters, and what the worker may do with the aggregates among the tickets."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Table
from tickets.counting.keys import ALL_AGGREGATES
from tickets.ticket.stored import TICKETS

DEAD_LETTERS = Table(
    "Streams.DeadLetters",
    "worker",
    "owner",
    "sequence",
    shared="a record that cannot be read names no tenant for certain, and operators look at all",
)

declare(
    DEAD_LETTERS,
    grants=(
        Grant(
            "worker",
            TICKETS,
            ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"),
            "ReadStream",
            stream=True,
        ),
        Grant(
            "worker",
            TICKETS,
            ("BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
            "MaintainAggregates",
            leading_keys=ALL_AGGREGATES,
        ),
        Grant("worker", DEAD_LETTERS, ("DeleteItem", "PutItem", "Query"), "KeepDeadLetters"),
        Grant("platform", DEAD_LETTERS, ("BatchGetItem", "DeleteItem", "GetItem", "Query")),
        # A verification, which the web process runs, waits until the stream is applied: it lists shards, reads none.
        Grant("platform", TICKETS, ("DescribeStream", "ListStreams"), "ListShards", stream=True),
        # An operator who replays a dead letter counts it: in aggregates, and in no ticket.
        Grant("platform", TICKETS, ("UpdateItem",), "ReplayDeadLetters", leading_keys=ALL_AGGREGATES),
    ),
)
