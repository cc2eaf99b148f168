"""Take words out of one ticket, and out of what is stored elsewhere of its texts: a mark stays in their place.

The tickets that were merged into it belong to it, for its page shows their texts. A ticket that was split off is one of
its own: a redaction says that the words are there too, and leaves them.

The ticket comes first, in transactions that hold only if it is still as it was read; then what `declare_texts` names.
A redaction that was broken off is gone on with by asking for it again. The row in the audit trail comes last: it says
who and where, and never which words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from delivery.outbox.publisher import publish
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.meter import item_size
from portal.dynamo.retry import retrying
from portal.dynamo.store import Action, Transaction
from portal.errors import Conflict, NotFound, TransactionRefused
from portal.web import locales
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy import redaction
from tenants.tenancy.context import TenantContext
from tenants.tenancy.redaction import MARK, RedactedTicket, SecretWords
from tickets.attachments import attachments
from tickets.data import desk_person
from tickets.data.desk_person import Raw
from tickets.data.person_erasing import as_read, first_of, model_of
from tickets.desk import changing
from tickets.letters import ledger
from tickets.ticket import stored, ticket_events
from tickets.ticket.custom_values import FieldType
from tickets.ticket.fields import BY_NAME, CUSTOM_PREFIX, ChoiceField
from tickets.ticket.stored import SPLITS, SummaryItem

# The attributes of a ticket's items in which people's words may stand, by the place that a person is told of.
TEXTS: Final = {
    "title": gettext_noop("title"),
    "tags": gettext_noop("tags"),
    "custom": gettext_noop("custom fields"),
    "description": gettext_noop("description"),
    "former_description": gettext_noop("history"),
    "body": gettext_noop("comments"),
    "former_texts": gettext_noop("comments"),
    "changes": gettext_noop("history"),
    "verb": gettext_noop("history"),
    "files": gettext_noop("names of files"),
    "letter": gettext_noop("letters"),
    "cc": gettext_noop("letters"),
    "delivery_note": gettext_noop("letters"),
}
_NO_TEXT: Final = frozenset({"id", "object", "digest", "type", "state", "field", "at", "by", "deleted"})  # in maps
_VERBS: Final = ("removed the file ", "ticked “", "unticked “")  # what they are followed by, people wrote
VERB: Final = gettext_noop("redacted words in this ticket")
_ATTEMPTS: Final = 6
_BUSY: Final = gettext_noop("This ticket is being changed by others at this moment. Please try again.")


@dataclass(frozen=True)
class _Without:
    """An item as it was read, and as it is without the words."""

    raw: Raw
    after: Raw = field(repr=False)

    @property
    def size(self) -> int:
        return item_size(self.after)

    @cached_property
    def values(self) -> dict[str, Any]:
        item = model_of(self.raw).from_raw_data(self.after)
        return {name: getattr(item, name) for name in self.after if self.after[name] != self.raw[name]}

    @property
    def update(self) -> tuple[Any, list[Action]]:
        model = model_of(self.raw)
        actions: list[Action] = [getattr(model, name).set(value) for name, value in self.values.items()]
        return model(self.raw["pk"]["S"], self.raw["sk"]["S"]), actions


@dataclass
class Redaction:
    """Count the items out of which words were taken, by place: those of the ticket, and holdings beside it.

    `split` are the numbers of the tickets split off, or the one that this was split off from, that have the words too.
    """

    places: Counter[str] = field(default_factory=Counter)
    split: list[int] = field(default_factory=list)

    def count(self, items: Iterable[_Without]) -> None:
        for item in items:
            for place in {TEXTS[name] for name in item.values}:
                self.places[place] += 1

    @property
    def counted(self) -> str:
        """Return in words where they were: "title, 2 in comments"."""
        number = locales.current().number
        told = ({"count": number(many), "place": _(place)} for place, many in sorted(self.places.items()))
        return ", ".join(_("%(count)s in %(place)s") % one for one in told)


def find(tenant: TenantContext, number: int, words: SecretWords) -> Redaction:
    """Count where the words stand in a ticket and those merged into it: a consistent Query, and then one of each ticket
    that was merged into it or split off. Raises NotFound."""
    found, items = Redaction(), _items(tenant, number)
    parts = [items, *_all_items(tenant, _merged(items))]
    for some in parts:
        found.count(_rewritten(some, words))
    found.split = _split_with(tenant, parts, words)
    return found


def redact(tenant: TenantContext, number: int, words: SecretWords, *, by: Actor) -> Redaction:
    """Take the words out of a ticket and of all that is stored elsewhere of it, and record that.

    Costs a Query and a transaction of the ticket, or more for more than a transaction takes; what each holding says
    that it costs; a read and a write for each letter of the ticket; the same for each ticket that was merged into it; a
    Query for each that was split off; and the audit row. Raises NotFound, Conflict.
    """
    done, items = Redaction(), _items(tenant, number)
    merged = _merged(items)
    parts = [items, *_all_items(tenant, merged)]
    for one, some in zip((number, *merged), parts, strict=True):
        _redact_ticket(tenant, one, some, words, done)
    done.split = _split_with(tenant, parts, words)
    done.places = +done.places
    name = f"#{number}"
    entry = AuditEntry(
        tenant.tenant_id, AuditAction.WORDS_REDACTED, by, "ticket", str(number), name, after=dict(done.places)
    )
    recording.record(entry)
    return done


def _redact_ticket(tenant: TenantContext, number: int, items: list[Raw], words: SecretWords, done: Redaction) -> None:
    ticket = RedactedTicket(number, words, _moments(items))
    for digest in _letters(items):
        done.places[gettext_noop("letters as they came")] += ledger.redact_original(tenant.repository, digest, words)
    is_more = True
    while is_more:
        is_more = retrying(
            lambda: _redact_some(tenant, number, words, done),
            again=lambda error: isinstance(error, TransactionRefused),
            attempts=_ATTEMPTS,
            given_up=lambda: Conflict(_(_BUSY)),
        )
    for holding, take_out in redaction.elsewhere():
        done.places[holding] += take_out(tenant, ticket)


def _merged(items: list[Raw]) -> list[int]:
    """Return the numbers of the tickets that were merged into this one, whose texts its page shows."""
    return [int(one["N"]) for raw in items for one in raw.get("merged", {}).get("L", ())]


def _split_with(tenant: TenantContext, parts: list[list[Raw]], words: SecretWords) -> list[int]:
    """Return the numbers of the tickets on the other side of a split that have the words."""
    links = [one["M"] for items in parts for raw in items for one in raw.get("links", {}).get("L", ())]
    numbers = sorted({int(one["number"]["N"]) for one in links if one["kind"]["S"] in SPLITS} - set(_merged(parts[0])))
    others = zip(numbers, _all_items(tenant, numbers), strict=True)
    return [number for number, some in others if _rewritten(some, words)]


def _all_items(tenant: TenantContext, numbers: list[int]) -> list[list[Raw]]:
    return fan_out([partial(desk_person.items_of, tenant, number) for number in numbers])


def _items(tenant: TenantContext, number: int) -> list[Raw]:
    items = desk_person.items_of(tenant, number)
    if not any(raw["sk"]["S"] == stored.SUMMARY for raw in items):
        raise NotFound(_("There is no ticket %(number)s.") % {"number": number})
    return items


def _moments(items: list[Raw]) -> tuple[str, ...]:
    """Return when something was written in the ticket, in order."""
    found = {raw[name]["S"] for raw in items for name in ("created_at", "at", "deleted_at") if name in raw}
    found |= {text["at"] for raw in items for text in desk_person.former_texts_of(raw)}
    return tuple(sorted(found))


def _letters(items: list[Raw]) -> list[str]:
    """Return the digests of the letters that the ticket and its comments came as: later ones quote earlier ones."""
    kept = (desk_person.letter_texts_of(raw) for raw in items)
    return [str(letter["digest"]) for letter in kept if letter.get("digest")]


def _redact_some(tenant: TenantContext, number: int, words: SecretWords, done: Redaction) -> bool:
    """Take the words out of as much of a ticket as one transaction takes, and tell whether there is more."""
    items = _items(tenant, number)
    found = _rewritten(items, words)
    if not found:
        return False
    raw_summary = next(raw for raw in items if raw["sk"]["S"] == stored.SUMMARY)
    of_summary = [one for one in found if one.raw is raw_summary]
    some, others = first_of([one for one in found if one.raw is not raw_summary])
    transaction = Transaction()
    for one in some:
        transaction.update(*one.update, condition=as_read(model_of(one.raw), one.raw))
        attachments.rename(tenant, transaction, one.values.get("files", ()))
    # As an erasure does, it raises the version: a form that was opened before would write back what it holds.
    summary = SummaryItem.from_raw_data(raw_summary)
    version, at = int(summary.version) + 1, max(clock.stamp(), summary.updated_at)
    actions: list[Action] = [action for one in of_summary for action in one.update[1]]
    actions += [
        SummaryItem.version.set(version),
        SummaryItem.erased_versions.set([*(summary.erased_versions or ()), version]),
    ]
    transaction.update(SummaryItem(summary.pk, stored.SUMMARY), actions, condition=as_read(SummaryItem, raw_summary))
    entry = changing.event(tenant, summary.pk, at, verb=VERB)
    entry.expires_at = summary.expires_at  # of spam all entries go
    transaction.put(entry)
    told = ticket_events.redacted(tenant, number, version=version)
    publish(tenant, transaction, told, subject=ticket_events.subject(number), at=at)
    tenant.repository.transact(transaction)
    done.count((*of_summary, *some))
    return bool(others)


# --- one item ---


def _rewritten(items: Iterable[Raw], words: SecretWords) -> list[_Without]:
    found = [_Without(raw, _without(raw, words)) for raw in items]
    return [one for one in found if one.after != one.raw]


def _without(raw: Raw, words: SecretWords) -> Raw:
    after = {name: _replaced(value, words) if name in TEXTS else value for name, value in raw.items()}
    if "changes" in raw:
        after["changes"] = {"L": [_change(one, words) for one in raw["changes"]["L"]]}
    if "verb" in raw:
        after["verb"] = _verb(raw, words)
    if "custom" in raw:
        values = raw["custom"]["M"]
        after["custom"] = {"M": {n: _replaced(one, words) if _is_text(n) else one for n, one in values.items()}}
    if "tags" in raw:
        after["tags"] = {"L": [{"S": tag} for tag in dict.fromkeys(one["S"] for one in after["tags"]["L"])]}
    return after


def _verb(raw: Raw, words: SecretWords) -> Raw:
    """Return the verb of an entry without the words. An item of a checklist that is cut off may end amid them, so it
    goes whole where its description had them."""
    verb = raw["verb"]["S"]
    begins = next(filter(verb.startswith, _VERBS), "")
    if not begins:
        return {"S": verb}
    if verb.endswith("…”:") and words.are_in(raw.get("former_description", {}).get("S", "")):
        return {"S": f"{begins}{MARK}”:"}
    return {"S": words.without(verb)}


def _change(change: Raw, words: SecretWords) -> Raw:
    """Return a change without the words: of a field that has texts, not of one with a few values or people."""
    name = change["M"]["field"]["S"]
    has_no_text = name in desk_person.CHANGED or isinstance(BY_NAME.get(name), ChoiceField)
    if name.startswith(CUSTOM_PREFIX):
        has_no_text = not _is_text(name.removeprefix(CUSTOM_PREFIX))
    return change if has_no_text else _replaced(change, words)


def _is_text(field_id: str) -> bool:
    """Tell whether a custom field has texts: its id begins with its type."""
    return field_id.startswith(FieldType.TEXT)


def _replaced(value: Raw, words: SecretWords) -> Raw:
    if "S" in value:
        return {"S": words.without(value["S"])}
    if "L" in value:
        return {"L": [_replaced(one, words) for one in value["L"]]}
    if "M" in value:
        return {"M": {n: one if n in _NO_TEXT else _replaced(one, words) for n, one in value["M"].items()}}
    return value
