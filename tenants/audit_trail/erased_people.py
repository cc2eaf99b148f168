"""Say by which names people go whom a desk has erased.

A pseudonym follows from the address and from a random text of the tenant's own. So the same address gets the same one
however often an erasure is begun, and nobody makes it out of an address without that text. The audit trail is never
changed; where its rows up to the erasure are shown, the pseudonym takes the place of the address. Later rows are shown
as they are: whoever is invited or joins again is told by the address, and so is what they do.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from portal.schema import keys
from portal.schema.keys import digest

_LABEL_DIGITS: Final = 4


@dataclass(frozen=True)
class ErasedPeople:
    """Hold the pseudonyms that a tenant has given, each an id of 32 hex digits, and the text that they follow from.

    `moments` has the stamp of when the erasure was begun last, by pseudonym; of who was erased before that was noted
    there is none, and the pseudonym is shown in all rows.
    """

    salt: str = ""
    pseudonyms: tuple[str, ...] = ()
    moments: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> ErasedPeople:
        """Read what `str` makes; None is nobody."""
        told = json.loads(text) if text else {}
        people = tuple(told.get("people", ()))
        moments = {one: at for one, at in zip(people, told.get("at", ()), strict=False) if at}
        return cls(told.get("salt", ""), people, moments)

    def __str__(self) -> str:
        moments = [self.moments.get(one, "") for one in self.pseudonyms]
        told = {"salt": self.salt, "people": list(self.pseudonyms), "at": moments}
        return json.dumps(told, separators=(",", ":"))

    def salted(self) -> ErasedPeople:
        """Return the same with a text to form pseudonyms from."""
        return self if self.salt else replace(self, salt=secrets.token_hex(16))

    def pseudonym(self, address: str) -> str:
        """Return the pseudonym of an address, whether it has been given or not."""
        return digest(f"{self.salt} {keys.anonymous(address)}")

    def with_one(self, pseudonym: str, *, at: str) -> ErasedPeople:
        """Return the same with one more, or with one that is erased again, at this stamp."""
        pseudonyms = (*dict.fromkeys((*self.pseudonyms, pseudonym)),)
        return replace(self, pseudonyms=pseudonyms, moments={**self.moments, pseudonym: at})

    def covers(self, pseudonym: str, at: str) -> bool:
        """Tell whether a row of this stamp shows the pseudonym."""
        return pseudonym in self.pseudonyms and at <= self.moments.get(pseudonym, at)

    def in_row_of(self, at: str) -> ErasedPeople:
        """Return those whose pseudonyms a row of this stamp shows."""
        return replace(self, pseudonyms=tuple(one for one in self.pseudonyms if self.covers(one, at)))

    def shown(self, text: str) -> str:
        """Return a text as it is shown: the name of an erased person in place of an address, all else as it is."""
        if not self.pseudonyms or "@" not in text:
            return text
        if " as " in text:  # an operator in the place of a member; no address has a space
            return " as ".join(map(self.shown, text.split(" as ")))
        pseudonym = self.pseudonym(text)
        return label(pseudonym) if pseudonym in self.pseudonyms else text

    def values(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return values before or after a change as they are shown."""
        return {name: self.shown(value) if isinstance(value, str) else value for name, value in values.items()}


NOBODY: Final = ErasedPeople()


def label(pseudonym: str) -> str:
    """Return what a pseudonym is shown as: "Erased person 1a2b"."""
    return f"Erased person {pseudonym[:_LABEL_DIGITS]}"
