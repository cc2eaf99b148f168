"""Say why a change of a ticket happened: by which rule, in which version, and because of which event.

The context of a rule's run carries it as a text. From there it comes to the entries of the ticket's history, and to the
row of the outbox, so that what follows from a change knows where it began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from tickets.ticket import stored


@dataclass(frozen=True)
class Cause:
    """A run of a rule. `event` is the id of the event in which it began, whatever ran in between, and `depth` counts
    the runs from there, 1 for the first."""

    rule_id: str
    version: int
    event: str
    depth: int

    def __str__(self) -> str:
        return f"{self.rule_id} {self.version} {self.event} {self.depth}"

    def run_id(self, number: int) -> str:
        return f"{self.event}-{number}"

    @classmethod
    def parse(cls, text: str | None) -> Self | None:
        """Read what `str` wrote, without what a newer version may have added; None of no cause."""
        if not text:
            return None
        rule_id, version, event, depth = text.split(" ")[:4]
        return cls(rule_id, int(version), event, int(depth))


def run_of(pk: str, text: str) -> tuple[str, str] | None:
    """Return the ids of the rule and of the run that made an entry with this cause, of the ticket with this key."""
    cause, owner = Cause.parse(text), stored.owner_of(pk)
    return (cause.rule_id, cause.run_id(owner[1])) if cause and owner else None
