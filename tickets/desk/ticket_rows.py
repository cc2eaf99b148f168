"""Hold one row of a ticket list, read from an index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TicketRow:
    """Hold a ticket as an index shows it: the projected attributes, under the names that the summary has.

    Read from the raw row, without PynamoDB's deserialisation, which is most of a list page's time in Python. The
    moments of what never happened are "".
    """

    pk: str
    tenant_status: str
    number: int
    title: str
    status: str
    priority: str
    tags: list[str]
    resolver: str
    resolver_name: str
    requester_name: str
    created_at: str
    updated_at: str
    comment_count: int
    version: int
    resolved_at: str
    reopened_at: str
    commented_at: str

    @classmethod
    def from_raw(cls, raw: dict[str, Any], *, is_raised: bool = False) -> TicketRow:
        """Read a row; with `is_raised` it was updated last by an internal note, for those who may read it."""
        return cls(
            pk=raw["pk"]["S"],
            tenant_status=raw["tenant_status"]["S"],
            number=int(raw["number"]["N"]),
            title=raw["title"]["S"],
            status=raw["status"]["S"],
            priority=raw["priority"]["S"],
            tags=[tag["S"] for tag in raw["tags"]["L"]],
            resolver=raw["resolver"]["S"],
            resolver_name=raw["resolver_name"]["S"],
            requester_name=raw["requester_name"]["S"],
            created_at=raw["created_at"]["S"],
            updated_at=raw["raised_at" if is_raised else "updated_at"]["S"],
            comment_count=int(raw["comment_count"]["N"]),
            version=int(raw["version"]["N"]),
            resolved_at=raw["resolved_at"]["S"] if "resolved_at" in raw else "",
            reopened_at=raw["reopened_at"]["S"] if "reopened_at" in raw else "",
            commented_at=raw["commented_at"]["S"] if "commented_at" in raw else "",
        )
