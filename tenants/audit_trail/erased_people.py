"""Say by which names people go whom a desk has erased.

A pseudonym follows from the address and from a random text of the tenant's own. So the same address gets the same one
however often an erasure is begun, and nobody makes it out of an address without that text. The audit trail is never
changed; where it is shown, an address that has a pseudonym is replaced by it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from portal.schema import keys
from portal.schema.keys import digest

_LABEL_DIGITS: Final = 4


@dataclass(frozen=True)
class ErasedPeople:
    """Hold the pseudonyms that a tenant has given, each an id of 32 hex digits, and the text that they follow from."""

    salt: str = ""
    pseudonyms: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> ErasedPeople:
        """Read what `str` makes; None is nobody."""
        told = json.loads(text) if text else {}
        return cls(told.get("salt", ""), tuple(told.get("people", ())))

    def __str__(self) -> str:
        return json.dumps({"salt": self.salt, "people": list(self.pseudonyms)}, separators=(",", ":"))

    def salted(self) -> ErasedPeople:
        """Return the same with a text to form pseudonyms from."""
        return self if self.salt else replace(self, salt=secrets.token_hex(16))

    def pseudonym(self, address: str) -> str:
        """Return the pseudonym of an address, whether it has been given or not."""
        return digest(f"{self.salt} {keys.anonymous(address)}")

    def with_one(self, pseudonym: str) -> ErasedPeople:
        """Return the same with one more."""
        return replace(self, pseudonyms=(*dict.fromkeys((*self.pseudonyms, pseudonym)),))

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
