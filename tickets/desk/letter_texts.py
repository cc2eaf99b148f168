"""Say what a comment or a description keeps of the letter that it came as, beside its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

FOLDED_LIMIT: Final = 60_000  # characters
FOLDED_BYTES: Final = 120_000  # of UTF-8; with a description of its longest, 320 of the 400 KB that an item can have
_MOST: Final = 50  # marks, and addresses of copies
_SHOWN: Final = 300  # characters of each

# Marks. Those with a value end with "=".
UNCONFIRMED: Final = "unconfirmed"  # nothing shows that the sender is who From says
CLAIMS_MEMBER: Final = "claims-member"  # From is the address of a member of the desk, who may not have written it
OTHER_PERSON: Final = "other-person"  # the reply address was given to somebody else
FORWARDED_BY: Final = "forwarded-by="
VERDICT: Final = "verdict="  # "spf FAIL"
FILE: Final = "file="
REMARK: Final = "remark="  # a sentence about how the letter was read

_SENTENCES: Final = {
    UNCONFIRMED: "The sender could not be confirmed.",
    CLAIMS_MEMBER: "The sender has the address of a member of this desk, but may be somebody else.",
    OTHER_PERSON: "This was sent by somebody other than the person whom the answer was sent to.",
}


@dataclass(frozen=True)
class FromLetter:
    """Hold what an entry keeps of its letter, which `digest` names in the ledger."""

    digest: str
    message_id: str = ""
    folded: str = ""
    marks: tuple[str, ...] = ()
    cc: tuple[str, ...] = ()

    def stored(self) -> dict[str, Any]:
        """Return the attributes of the entry's item."""
        found = {
            "digest": self.digest,
            "folded": self.folded[:FOLDED_LIMIT].encode()[:FOLDED_BYTES].decode("utf-8", "ignore"),
            "marks": [mark[:_SHOWN] for mark in self.marks[:_MOST]],
            "cc": [address[:_SHOWN] for address in self.cc[:_MOST]],
        }
        kept = {name: value for name, value in found.items() if value}
        return {"letter": kept, "message_id": self.message_id[:250] or None}


def warnings(marks: list[str]) -> Iterator[str]:
    """Yield a sentence for each mark about the sender."""
    for mark in marks:
        if mark in _SENTENCES:
            yield _SENTENCES[mark]
        elif mark.startswith(FORWARDED_BY):
            yield f"It was forwarded by {mark.removeprefix(FORWARDED_BY)}."


def values(marks: list[str], kind: str) -> list[str]:
    """Return the values of the marks of a kind that has some, such as FILE."""
    return [mark.removeprefix(kind) for mark in marks if mark.startswith(kind)]
