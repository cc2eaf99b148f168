"""Say what a comment or a description keeps of the letter that it came as, beside its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.dynamo.store import Store
from portal.errors import ConditionFailed
from tickets.ticket.stored import ActivityItem, DetailItem

FOLDED_LIMIT: Final = 60_000  # characters
FOLDED_BYTES: Final = 120_000  # of UTF-8; with a description of its longest, 320 of the 400 KB that an item can have
_MOST: Final = 50  # marks, and addresses of copies
_SHOWN: Final = 300  # characters of each
# A transaction costs two write units for each KB, a write of its own one. So of a text beyond this the transaction has
# the beginning alone, and a second write the whole. Below it, both cost the same or the second write more.
_WHOLE_BYTES: Final = 1_500
_BEGINNING_BYTES: Final = 300

# Marks. Those with a value end with "=".
UNCONFIRMED: Final = "unconfirmed"  # nothing shows that the sender is who From says
CLAIMS_MEMBER: Final = "claims-member"  # From is the address of a member of the desk, who may not have written it
OTHER_PERSON: Final = "other-person"  # the reply address was given to somebody else
SPLIT: Final = "split"  # it was a comment of another ticket
FORWARDED_BY: Final = "forwarded-by="
VERDICT: Final = "verdict="  # "spf FAIL"
CHECKS: Final = {
    "spf": "SPF",
    "dkim": "DKIM",
    "dmarc": "DMARC",
    "spam": gettext_noop("spam check"),
    "virus": gettext_noop("virus check"),
}
FILE: Final = "file="
REMARK: Final = "remark="  # a sentence about how the letter was read
GIVEN_NAME: Final = REMARK + "The form gives the name "  # and a name other than the known one, which nobody can edit
_BEGUN: Final = REMARK + gettext_noop(
    "Only the beginning of its text is here so far. The letter as it came has the whole."
)

_SENTENCES: Final = {
    UNCONFIRMED: gettext_noop("The sender could not be confirmed."),
    CLAIMS_MEMBER: gettext_noop("The sender has the address of a member of this desk, but may be somebody else."),
    OTHER_PERSON: gettext_noop("This was sent by somebody other than the person whom the answer was sent to."),
}


@dataclass(frozen=True)
class FromLetter:
    """Hold what an entry keeps of its letter, which `digest` names in the ledger.

    `comes_again` says that whoever files it does so again after a kill, and calls `complete` then: so what need not be
    in the transaction of the ticket or comment is written after it, at half the cost.
    """

    digest: str
    message_id: str = ""
    folded: str = ""
    marks: tuple[str, ...] = ()
    cc: tuple[str, ...] = ()
    to: tuple[str, ...] = ()  # the others that it was addressed to
    comes_again: bool = False

    def is_begun(self, text: str) -> bool:
        """Tell whether the transaction has the beginning of the entry's text alone."""
        return self.comes_again and len(text.encode()) + len(self._folded.encode()) > _WHOLE_BYTES

    def begin(self, text: str) -> tuple[str, dict[str, Any]]:
        """Return the text and the other attributes of the entry's item, as the transaction writes them."""
        marks = [mark[:_SHOWN] for mark in self.marks[:_MOST]]
        copies = [address[:_SHOWN] for address in self.cc[:_MOST]]
        others = [address[:_SHOWN] for address in self.to[:_MOST]]
        found = {"digest": self.digest, "folded": self._folded, "marks": marks, "cc": copies, "to": others}
        if self.is_begun(text):
            text, found["folded"], found["marks"] = _beginning(text), "", [*marks, _BEGUN]
        kept = {name: value for name, value in found.items() if value}
        return text, {"letter": kept, "message_id": self.message_id[:250] or None}

    def complete(self, repository: Store, item: ActivityItem | DetailItem, text: str) -> None:
        """Write the whole text of an entry whose item has its beginning: one UpdateItem, none where it is whole.

        Nothing is written where somebody has changed the text meanwhile.
        """
        kept = item.letter.as_dict() if item.letter else {}  # type: ignore[no-untyped-call]  # unannotated in PynamoDB
        if _BEGUN not in kept.get("marks", ()):
            return
        kept["marks"] = [mark for mark in kept["marks"] if mark != _BEGUN]
        whole = {name: value for name, value in {**kept, "folded": self._folded}.items() if value}
        written: Any = ActivityItem.body if isinstance(item, ActivityItem) else DetailItem.description
        try:
            repository.update(
                type(item)(item.pk, item.sk),
                [written.set(text), type(item).letter.set(whole)],
                condition=(written == _beginning(text)) & type(item).letter["marks"].contains(_BEGUN),
            )
        except ConditionFailed:
            return

    @property
    def _folded(self) -> str:
        return self.folded[:FOLDED_LIMIT].encode()[:FOLDED_BYTES].decode("utf-8", "ignore")


def _beginning(text: str) -> str:
    return text.encode()[:_BEGINNING_BYTES].decode("utf-8", "ignore")


def warnings(marks: list[str]) -> Iterator[str]:
    """Yield a sentence for each mark about the sender."""
    for mark in marks:
        if mark in _SENTENCES:
            yield _(_SENTENCES[mark])
        elif mark.startswith(FORWARDED_BY):
            yield _("It was forwarded by %(address)s.") % {"address": mark.removeprefix(FORWARDED_BY)}


def checks(marks: list[str]) -> Iterator[str]:
    """Yield which checks of the receiving server the letter has passed, and which it has not."""
    found = [mark.split(" ") for mark in values(marks, VERDICT)]
    for said, wanted in ((_("Passed: %(checks)s"), True), (_("Not passed: %(checks)s"), False)):
        names = [_(CHECKS[name]) for name, status in found if (status == "PASS") is wanted and name in CHECKS]
        if names:
            yield said % {"checks": ", ".join(names)}


def values(marks: list[str], kind: str) -> list[str]:
    """Return the values of the marks of a kind that has some, such as FILE."""
    return [mark.removeprefix(kind) for mark in marks if mark.startswith(kind)]
