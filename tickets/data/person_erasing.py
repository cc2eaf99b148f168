"""Forget one person: replace the name and the id in all tickets by a pseudonym, and the address in texts where wished.

The tenant's item remembers the pseudonym first. Then what stands beside the tickets is changed, and each ticket in a
transaction that holds only if it is still as it was read; the numbers that are counted stay, under the pseudonym. The
row in the audit trail comes last, so an erasure that was broken off is gone on with by beginning it again: what is
replaced already is not found any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol, TypeVar

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from portal import clock
from portal.dynamo.meter import item_size
from portal.dynamo.retry import retrying
from portal.dynamo.store import ITEM_LIMIT, Action, Transaction
from portal.errors import ConditionFailed, Conflict, Invalid, Throttled, TransactionRefused
from tenants.audit_trail import erased_people, recording
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes, members
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalPlace, of_this_form, personal_data
from tenants.tenancy.stored import TenantItem
from tickets.attachments import attachments, removing
from tickets.attachments.stored import listed
from tickets.data import desk_person
from tickets.data.desk_person import Advance, Raw
from tickets.data.person_finding import PersonFound
from tickets.desk import comment_changes, letter_texts
from tickets.letters import ledger
from tickets.requesters import requester_changes
from tickets.ticket import stored
from tickets.ticket.stored import ActivityItem, ChangeMap, DetailItem, FileMap, FormerText, SummaryItem
from tickets.verification.recount import last_number

CHANGED: Final = gettext_noop("Somebody else has just changed this desk. Please try again.")
_MEMBERS: Final = 40  # of one transaction beside the summary
_BYTES: Final = 3_000_000  # of them; AWS takes 4 MB in one transaction
_PARTS: Final = ("author", "requester", "resolver", "deleted_by")

# By attribute: a text, the tags, what an entry tells of each field, or as a frozenset the ids that leave a set.
Values = dict[str, Any]


class _Rewritten(Protocol):
    """An item with its new values by attribute, and its bytes afterwards."""

    @property
    def size(self) -> int: ...

    @property
    def values(self) -> Values: ...


_R = TypeVar("_R", bound=_Rewritten)


@dataclass(frozen=True)
class ReplacedItem:
    """An item as it was read, with the values that it has afterwards. `is_shortened` says that its texts have no room
    for the whole name of the pseudonym, so that a shorter one is in them."""

    raw: Raw
    values: Values
    is_shortened: bool

    @property
    def model(self) -> Any:
        return model_of(self.raw)

    @cached_property
    def size(self) -> int:
        """Return the bytes that it has afterwards."""
        changed = {n: _typed(value) for n, value in self.values.items() if not isinstance(value, frozenset)}
        return item_size(self.raw | changed)

    @property
    def update(self) -> tuple[Any, list[Action]]:
        """Return the item to be changed, and what is to be set in it."""
        model = self.model
        actions = [_action(getattr(model, name), value) for name, value in self.values.items()]
        return model(self.raw["pk"]["S"], self.raw["sk"]["S"]), actions


def model_of(raw: Raw) -> Any:
    return {stored.SUMMARY: SummaryItem, stored.DETAIL: DetailItem}.get(raw["sk"]["S"], ActivityItem)


def _action(attribute: Any, value: Any) -> Action:
    action: Action = attribute.delete(set(value)) if isinstance(value, frozenset) else attribute.set(_stored(value))
    return action


def replaced(new: NewName, raw: Raw, *, is_asked: bool = False) -> ReplacedItem | None:
    """Return an item of a ticket with the pseudonym in place of the person, None where nothing of it changes.
    `is_asked` says that the person is, or was, the ticket's requester.

    In texts stands the longest of its names with which the item is not larger than it may be: the last one is no longer
    than any address.
    """
    digits = new.name.rpartition(" ")[2]
    for name in (new.name, f"Erased {digits}", digits, "*"):
        found = ReplacedItem(raw, _values(new, raw, name, is_asked=is_asked), is_shortened=name != new.name)
        if not found.values:
            return None
        if found.size <= ITEM_LIMIT:
            break
    return found


def first_of(items: list[_R]) -> tuple[list[_R], list[_R]]:
    """Return the first items, as many as one transaction takes, and the others."""
    size = many = members = 0
    for one in items[:_MEMBERS]:
        size += one.size
        members += 1 + len(one.values.get("files", ()))
        if many and (size > _BYTES or members > _MEMBERS):
            break
        many += 1
    return items[:many], items[many:]


def _values(new: NewName, raw: Raw, name: str, *, is_asked: bool) -> Values:
    values: Values = {}
    for part in _PARTS:
        if new.person.is_who(_text(raw, part)):
            values |= {part: new.pseudonym, f"{part}_name": new.name}
    if "requester" in values and "tenant_requester" in raw and (owner := stored.owner_of(raw["pk"]["S"])):
        # A key of an index is written over and never removed: the guard lets nothing else through.
        values["tenant_requester"] = stored.tenant_requester(owner[0], new.pseudonym)
    if "resolver" in values:
        values["resolver_updated"] = stored.resolver_updated(new.pseudonym, _text(raw, "updated_at"))
        if raised_at := _text(raw, "raised_at"):
            values["resolver_raised"] = stored.resolver_updated(new.pseudonym, raised_at)
    for name_of_set in desk_person.sets_with(new.person, raw):
        values[name_of_set] = frozenset(new.person.user_ids)
    for former in (f"former_{changed}" for changed in desk_person.CHANGED):
        if new.person.is_who(_text(raw, former)):
            values[former] = new.pseudonym
    told = desk_person.changes_of(raw)
    if (changes := [_change(new, name, **one) for one in told]) != told:
        values["changes"] = changes
    texts = desk_person.former_texts_of(raw)
    if (new_texts := [_former_text(new, name, one) for one in texts]) != texts:
        values["former_texts"] = new_texts
    if (letter := _letter(new, raw, name, is_asked=is_asked)) is not None:
        values["letter"] = letter
    return values | (dict(_written(new, raw, name)) if new.texts else {})


def _letter(new: NewName, raw: Raw, name: str, *, is_asked: bool) -> dict[str, str | list[str]] | None:
    """Return what an item keeps of its letter afterwards, None where that is the same. One that went to the person is
    deleted as it came, and the item says so. The name that the requester gave in a form goes in any case."""
    kept = desk_person.letter_texts_of(raw)
    after = {part: _without(new, value, name) for part, value in kept.items()} if new.texts else dict(kept)
    if desk_person.letter_to(new.person, raw):
        after["deleted"] = "as it came"
    if is_asked and "marks" in after:
        after["marks"] = [mark for mark in after["marks"] if not mark.startswith(letter_texts.GIVEN_NAME)]
    return after if after != kept else None


def _written(new: NewName, raw: Raw, name: str) -> Iterator[tuple[str, Any]]:
    """Yield what people wrote with the address in it, by attribute, as it is without the address."""
    others = [f"{part}_name" for part in desk_person.others_shown(new.person, raw)]
    for attribute, text in (desk_person.texts_of(raw) | {one: _text(raw, one) for one in others}).items():
        if (without := new.person.mail.replaced(text, name)) != text:
            yield attribute, without
    tags = desk_person.tags_of(raw)
    if (new_tags := [new.person.mail.replaced(tag, _tag(name)) for tag in tags]) != tags:
        yield "tags", [*dict.fromkeys(new_tags)]
    custom = desk_person.custom_of(raw)
    if (new_custom := {one: new.person.mail.replaced(text, name) for one, text in custom.items()}) != custom:
        yield "custom", new_custom
    files = desk_person.file_names_of(raw)
    if (new_files := [new.person.mail.replaced(file, name) for file in files]) != files:
        item = model_of(raw).from_raw_data(raw)
        yield "files", [listed(one, name=file) for one, file in zip(item.files, new_files, strict=True)]
    copies = desk_person.copied_to(raw)
    if (others_copied := [one for one in copies if not new.person.mail.is_in(one)]) != copies:
        yield "cc", others_copied


def _without(new: NewName, value: str | list[str], name: str) -> str | list[str]:
    if isinstance(value, str):
        return new.person.mail.replaced(value, name)
    return [new.person.mail.replaced(one, name) for one in value]


def _change(new: NewName, name: str, field: str, before: str = "", after: str = "") -> dict[str, str]:
    """Return what an entry tells of one field, with the new name: of a person by the name alone."""
    values = {"before": before, "after": after}
    if field in desk_person.CHANGED:
        values = {when: new.name if text in new.names else text for when, text in values.items()}
    if new.texts:
        shown = _tag(name) if field == "tags" else name
        values = {when: new.person.mail.replaced(text, shown) for when, text in values.items()}
    return {"field": field, **values}


def _former_text(new: NewName, name: str, text: dict[str, str]) -> dict[str, str]:
    """Return an earlier text of a comment with the new name: of whoever edited it, and in the text."""
    who = {"by": new.pseudonym, "by_name": new.name} if new.person.is_who(text.get("by", "")) else {}
    said = (
        {part: new.person.mail.replaced(text.get(part, ""), name) for part in ("body", "by_name")} if new.texts else {}
    )
    return text | said | who


def _tag(name: str) -> str:
    return name.lower().replace(" ", "-")


def _text(raw: Raw, name: str) -> str:
    return str(raw.get(name, {}).get("S", ""))


def _stored(value: Any) -> Any:
    if isinstance(value, list):
        return [one if isinstance(one, str | FileMap) else _map_of(one) for one in value]
    return value


def _map_of(value: dict[str, str]) -> Any:
    make: Any = ChangeMap if "field" in value else FormerText
    return make(**value)


def _typed(value: Any) -> Raw:
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, FileMap):
        return {"M": value.serialize(value)}
    if isinstance(value, dict):
        return {"M": {name: _typed(one) for name, one in value.items()}}
    return {"L": [_typed(one) for one in value]}


# --- the erasure ---


ENTITY: Final = ("person", "erased")  # of all rows about erasures, so that one Query lists them
_ATTEMPTS: Final = 6  # of one ticket, while others change it


@dataclass
class Erasure:
    """Say who is erased, and count what was replaced so far, in the tickets up to the number `reached`, of `last`.

    `name` is the one that the person goes by now, `names` are those by which the desk knew them. With `with_texts` the
    address is replaced in what people wrote, too, and with `with_files` the files that they sent are removed, of which
    `files` are. `named` and `texts` count as `PersonFound` does, and `tickets` those
    in which something was replaced. `shortened` are those with a text that had room for a shorter pseudonym alone, and
    `left` those that had none for any.
    """

    person: DeskPerson
    pseudonym: str
    name: str
    names: list[str]
    with_texts: bool
    last: int
    reached: int = 0
    tickets: int = 0
    named: int = 0
    texts: int = 0
    beside: int = 0
    shortened: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    with_files: bool = False
    files: int = 0

    @classmethod
    def load(cls, told: dict[str, Any]) -> Erasure:
        """Return what `dumped` made. Raises ValueError for what another version has made."""
        return cls(**{**of_this_form(cls, told), "person": DeskPerson.load(told["person"])})

    def dumped(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_whole(self) -> bool:
        return self.reached >= self.last

    @property
    def new_name(self) -> NewName:
        return NewName(self.person, self.pseudonym, self.name, self.names, self.with_texts)

    @property
    def counted(self) -> str:
        return desk_person.counted(**self.counts)

    @property
    def shortening(self) -> str:
        """Say in a sentence where a text had no room for the name, "" where all had."""
        if not self.shortened:
            return ""
        told = ngettext(
            "Ticket %(tickets)s has a text without room for the whole name: a shorter one is in it.",
            "Tickets %(tickets)s have a text without room for the whole name: a shorter one is in it.",
            len(self.shortened),
        )
        return told % {"tickets": ", ".join(map(str, self.shortened))}

    @property
    def counts(self) -> dict[str, int]:
        """Return what was replaced, `beside` how much of it beside the tickets, and how many files were removed."""
        replaced = {"named": self.named, "texts": self.texts, "tickets": self.tickets, "beside": self.beside}
        return replaced | ({"files": self.files} if self.files else {})

    def count(self, replaced: Iterable[PersonalPlace]) -> None:
        for place in replaced:
            self.texts += place.is_text
            self.named += not place.is_text


def begin(tenant: TenantContext, found: PersonFound, *, texts: bool = False, files: bool = False) -> Erasure:
    """Note in the tenant's item that this person is erased, and replace what stands beside the tickets.

    `found` is what a whole search has found. Where a person is at work it depends on their role. Raises Conflict for a
    member, and Invalid for an address of which nothing here would be replaced.
    """
    person = found.person
    if any(members.member(tenant.repository, user_id) for user_id in person.accounts):
        raise Conflict(_("This person is a member. Remove them from the desk first; their tickets can be reassigned."))
    _refuse_unknown(found, texts=texts)
    pseudonym = _remember(tenant, person.address)
    last = last_number(tenant.repository)
    erasure = Erasure(person, pseudonym, erased_people.label(pseudonym), found.names, texts, last, with_files=files)
    erasure.count(replaced := [*_replaced_beside(tenant, erasure.new_name)])
    erasure.beside = len(replaced)
    return erasure


def _replaced_beside(tenant: TenantContext, new: NewName) -> Iterator[PersonalPlace]:
    """Put the new name wherever the person's stands beside the tickets, and yield the places. Raises Conflict."""
    try:
        for kind in personal_data():
            for item in kind.read(tenant, new.person):
                if found := new.replaces(kind.places(new.person, new.names, item)):
                    if kind.replace:
                        kind.replace(tenant, new, item)
                    yield from found
    except (ConditionFailed, TransactionRefused) as refused:
        raise Conflict(_(CHANGED)) from refused


def go_on(
    tenant: TenantContext, erasure: Erasure, *, most: int | None = None, advance: Advance = lambda numbers: None
) -> None:
    """Erase in the next `most` numbers, or in all that are left. Raises Throttled where a ticket is being changed again
    and again, and Conflict where a file of one is. One that has no room for the pseudonym is noted, and the others are
    gone on with."""
    until = erasure.last if most is None else min(erasure.last, erasure.reached + most)
    for number in range(erasure.reached + 1, until + 1):
        try:
            _erase_in(tenant, number, erasure)
        except TransactionRefused:
            erasure.left.append(number)
        erasure.reached = number
        advance(1)


def end(tenant: TenantContext, erasure: Erasure, *, by: Actor) -> None:
    """Record it in the audit trail: how much was replaced, and not of whom. Raises Conflict where tickets are left."""
    if erasure.left:
        told = ngettext(
            "Ticket %(tickets)s has no room left for the pseudonym. All others are done.",
            "Tickets %(tickets)s have no room left for the pseudonym. All others are done.",
            len(erasure.left),
        )
        raise Conflict(told % {"tickets": ", ".join(map(str, erasure.left))})
    try:
        requester_changes.forget(tenant, erasure.person)
    except TransactionRefused as refused:
        raise Conflict(_(CHANGED)) from refused
    entry = AuditEntry(tenant.tenant_id, AuditAction.PERSON_ERASED, by, *ENTITY, erasure.name, {}, erasure.counts)
    recording.record(entry)


def _refuse_unknown(found: PersonFound, *, texts: bool) -> None:
    """Raise Invalid where an erasure would do nothing."""
    person = found.person
    if not found.is_to_be_erased:
        if person.erased_as:
            raise Invalid(
                _("%(address)s was erased before, as %(erased_as)s. Nothing is left to be erased.")
                % {"address": person.address, "erased_as": person.erased_as}
            )
        said = _("This desk stores nothing about the address %(address)s. Nothing was erased.")
        raise Invalid(said % {"address": person.address}, field="address")
    if found.has_texts_alone and not texts:
        raise Invalid(
            _("%(address)s occurs here in texts alone, and texts were not to be changed. Nothing was erased.")
            % {"address": person.address},
            field="texts",
        )


def _remember(tenant: TenantContext, address: str) -> str:
    """Note in the tenant's item that this person is erased, and return the pseudonym."""

    def attempt() -> str:
        stored = tenant_directory.get(tenant.tenant_id)
        known = ErasedPeople.parse(stored.erased).salted()
        pseudonym = known.pseudonym(address)
        erased = known.with_one(pseudonym, at=clock.stamp())
        unchanged = TenantItem.erased == stored.erased if stored.erased else TenantItem.erased.does_not_exist()
        transaction = Transaction()
        transaction.update(stored, [TenantItem.erased.set(str(erased))], condition=unchanged)
        if tenant.user_id:  # a command is nobody's
            member_changes.require_role(transaction, tenant)
        recording.commit(transaction, [])
        return pseudonym

    return retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
        given_up=lambda: Conflict(_(CHANGED)),
    )


def _erase_in(tenant: TenantContext, number: int, done: Erasure) -> None:
    before = done.named + done.texts
    if done.with_files:  # first: what is replaced below says no more who sent them
        for file_id in desk_person.files_sent(done.person, desk_person.items_of(tenant, number)):
            removing.remove(tenant, number, file_id, is_told=False)
            done.files += 1
    is_more = True
    while is_more:
        is_more = retrying(
            lambda: _erase_some(tenant, number, done),
            again=lambda error: isinstance(error, TransactionRefused) and not _is_too_large(error),
            attempts=_ATTEMPTS,
            given_up=lambda: Throttled(
                _("Ticket %(number)s is being changed by others again and again.") % {"number": number}
            ),
        )
    done.tickets += done.named + done.texts > before


def _is_too_large(refused: TransactionRefused) -> bool:
    """Tell whether an item was refused for what is in it, which is no better the next time."""
    return any(reason is not None and reason.code == "ValidationError" for reason in refused.reasons)


def _erase_some(tenant: TenantContext, number: int, done: Erasure) -> bool:
    """Replace as much of a ticket as one transaction takes, and tell whether there is more."""
    items = desk_person.items_of(tenant, number)
    is_asked = any(desk_person.has_asked(done.person, done.new_name.pseudonym, raw) for raw in items)
    found = [one for raw in items if (one := replaced(done.new_name, raw, is_asked=is_asked))]
    if not found:
        return False
    for one in found:
        if digest := desk_person.letter_to(done.person, one.raw):
            ledger.forget_original(tenant.repository, digest)  # before the item that names it is written
    summary = next((raw for raw in items if raw["sk"]["S"] == stored.SUMMARY), None)
    is_of_summary = [one for one in found if one.raw is summary]
    some, others = first_of([one for one in found if one.raw is not summary])
    transaction = Transaction()
    for one in some:
        transaction.update(*one.update, condition=as_read(one.model, one.raw))
        attachments.rename(tenant, transaction, one.values.get("files", ()))
    if summary:
        # Whatever of the ticket is replaced raises its version: a form that was opened before, and another erasure
        # that has read the ticket already, would otherwise write back what they hold.
        written = SummaryItem.from_raw_data(summary)
        version = int(written.version) + 1
        made = [*(written.erased_versions or ()), version]
        actions = [action for one in is_of_summary for action in one.update[1]]
        actions += [SummaryItem.version.set(version), SummaryItem.erased_versions.set(made)]
        transaction.update(
            SummaryItem(summary["pk"]["S"], stored.SUMMARY), actions, condition=as_read(SummaryItem, summary)
        )
    tenant.repository.transact(transaction)
    for one in (*is_of_summary, *some):
        done.count(done.new_name.replaces(desk_person.places(done.person, done.names, number, one.raw)))
        if one.is_shortened and number not in done.shortened:
            done.shortened.append(number)
    return bool(others)


def as_read(model: Any, raw: Raw) -> Any:
    """Return the condition that an item is as it was read. Only an erasure, which raises the version, the editing of a
    comment, and what becomes of its files change an entry of the history."""
    item = model.from_raw_data(raw)
    if model is SummaryItem:
        return (
            (SummaryItem.version == item.version)
            & (SummaryItem.updated_at == item.updated_at)
            & (SummaryItem.raised_at == item.raised_at if item.raised_at else SummaryItem.raised_at.does_not_exist())
            & (SummaryItem.resolver == item.resolver)
        )
    files = model.files == list(item.files) if item.files else model.files.does_not_exist()
    if model is DetailItem:
        return (DetailItem.description == item.description) & files
    return comment_changes.as_read(item)
