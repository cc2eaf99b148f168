"""Filter tickets by what they were at a moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from portal.errors import Invalid
from tickets.ticket import texts
from tickets.ticket.fields import Status
from tickets.time_machine.past_tickets import ThenAndNow

NAMES = ("status", "assignee", "tag", "changed")


@dataclass(frozen=True)
class PastFilter:
    """Hold what a ticket has to have been, each "" for anything.

    `assignee` is a part of the name, which is what a history keeps; `changed` is "yes" for those alone that are
    different now.
    """

    status: str = ""
    assignee: str = ""
    tag: str = ""
    changed: str = ""

    @classmethod
    def of(cls, params: Mapping[str, str]) -> PastFilter:
        """Read the filters of an address. Raises Invalid for a status that there is not."""
        told = cls(**{name: params.get(name, "").strip() for name in NAMES})
        if told.status and told.status not in {status.value for status in Status}:
            raise Invalid("There is no such status.", field="status")
        return cls(told.status, told.assignee, texts.word(told.tag), told.changed and "yes")

    @property
    def params(self) -> dict[str, str]:
        """Return the filters that are not empty, as an address has them."""
        return {name: value for name in NAMES if (value := getattr(self, name))}

    def takes(self, found: ThenAndNow) -> bool:
        """Tell whether a ticket was like this. One that did not exist was not."""
        then = found.then
        if then is None or (self.status and then.values["status"] != self.status):
            return False
        if self.changed and not found.differing:
            return False
        is_theirs = self.assignee.casefold() in then.resolver_name.casefold()
        return is_theirs and (not self.tag or self.tag in then.values["tags"])
