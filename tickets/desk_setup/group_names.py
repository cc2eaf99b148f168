"""Read which groups a desk has: names and ways of assignment stand in its setup, so no page reads them by itself.

Their members and the changes of groups are in tickets/groups. A group that was deleted stays here under its id, so that
the tickets which had it remain readable.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from tickets.desk_setup.stored import declare_part
from tickets.ticket.custom_values import GROUP_ID

PART: Final = "groups"  # of the desk's setup


class Assigning(StrEnum):
    """The way by which tickets of a group get an assignee."""

    HAND = "hand"
    TURN = "turn"
    LOAD = "load"


@dataclass(frozen=True)
class AgentGroup:
    """A group of agents. New tickets for which no group is given come into the default one.

    `assigns` is an Assigning, or a word of a newer version, which is as HAND here; `more` is what a newer version has
    stored of it, and is written back as it is.
    """

    id: str
    name: str
    assigns: str = Assigning.HAND.value
    is_default: bool = False
    is_archived: bool = False
    more: Mapping[str, Any] = field(default_factory=dict, hash=False)


@lru_cache(maxsize=512)
def parsed(text: str) -> tuple[AgentGroup, ...]:
    """Read what `written` wrote, "" for nothing. Raises ValueError, TypeError or KeyError for anything else."""
    names = AgentGroup.__dataclass_fields__.keys() - {"more"}
    return tuple(
        AgentGroup(
            **{name: value for name, value in one.items() if name in names},
            more={name: value for name, value in one.items() if name not in names},
        )
        for one in (json.loads(text) if text else ())
    )


def written(groups: Iterable[AgentGroup]) -> str:
    told = [
        {"id": one.id, "name": one.name, "assigns": one.assigns, **one.more}
        | {name: True for name in ("is_default", "is_archived") if getattr(one, name)}
        for one in groups
    ]
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"), sort_keys=True) if told else ""


def _is_stored_text(text: str) -> bool:
    """Tell whether a text is one that `written` wrote: for rows that are brought in."""
    return all(GROUP_ID.match(one.id) and isinstance(one.name, str) for one in parsed(text))


declare_part(PART, _is_stored_text)
