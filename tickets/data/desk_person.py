"""Say who somebody is to a desk: an address, with all ids by which the desk knows it.

An account has one id here. Where a desk was brought in from another installation, or an account was removed and made
anew, tickets still name the former id: the desk's audit trail tells which ids an address has had.

An erasure replaces and counts the places in tickets that are found here: both go by `places`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from portal.dynamo.store import RawItems
from portal.errors import Invalid
from portal.schema import keys as all_keys
from portal.web import locales
from tenants.audit_trail.erased_people import ErasedPeople, label
from tenants.audit_trail.recording import AuditAction
from tenants.audit_trail.stored import AUDIT, audited_at_key
from tenants.sign_in import accounts
from tenants.sign_in.stored import folded
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, PersonalPlace
from tickets.attachments import scanning
from tickets.requesters import requesters
from tickets.ticket import stored
from tickets.ticket.fields import CUSTOM, DESCRIPTION, SUMMARISED, Channel, TextField
from tickets.ticket.stored import TICKETS

Raw = dict[str, Any]

_TOLD: Final = ("actor_email", "entity_name", "before", "after")  # in a row of the trail, where an address may stand


def person_of(tenant: TenantContext, address: str) -> DeskPerson:
    """Return who has this address: the account, the requester with those who were merged into them, and each id that
    the audit trail names for the address.

    Costs four reads and the whole trail. Raises Invalid for what is no address.
    """
    try:
        known = folded(address)
        if "@" not in known:  # a mistyped one, of which "nothing to erase" would say too much
            raise ValueError(address)
    except ValueError as error:
        raise Invalid(_("That is not an e-mail address."), field="address") from error
    account, outside = accounts.find_by_email(known), requesters.by_address(tenant, known)
    erased = ErasedPeople.parse(tenant.erased)
    pseudonym = erased.pseudonym(known)
    person = DeskPerson(
        known,
        (*([account.id] if account else []), *(outside.ids if outside else [])),
        account.name if account else outside.name if outside else "",
        erased_as=label(pseudonym) if pseudonym in erased.pseudonyms else "",
    )
    trail = tenant.repository.query_all(RawItems(AUDIT), all_keys.tenant)
    return _looked_up(person, trail, lambda at: erased.covers(pseudonym, at))


def _looked_up(person: DeskPerson, trail: Iterator[Raw], covers: Callable[[str], bool]) -> DeskPerson:
    """Return the person with what the trail tells. It is read once: a row without the address waits, by the ids in it,
    until all ids of the person are known."""
    ids, rows, shown, erased_at = {*person.user_ids}, 0, 0, ""
    waiting: Counter[frozenset[str]] = Counter()
    for raw in trail:
        at = audited_at_key(raw["timestamp_event_id"]["S"])
        ids |= _ids_for(person, raw)
        if _mentions(person, raw):
            rows += 1
            shown += not covers(at)
        else:
            waiting[frozenset(_ids_in(raw))] += 1
        if raw["action"]["S"] == AuditAction.PERSON_ERASED and person.erased_as == _text(raw, "entity_name"):
            erased_at = max(erased_at, at)
    rows += sum(many for named, many in waiting.items() if named & ids)
    return replace(person, user_ids=(*sorted(ids),), trail_rows=rows, trail_shown=shown, erased_at=erased_at)


def trail_rows(tenant: TenantContext, person: DeskPerson) -> Iterator[Raw]:
    """Yield the rows of the audit trail that name the person, raw: a Query for each megabyte of the trail."""
    for raw in tenant.repository.query_all(RawItems(AUDIT), all_keys.tenant):
        if _mentions(person, raw) or not _ids_in(raw).isdisjoint(person.user_ids):
            yield raw


def _ids_for(person: DeskPerson, raw: Raw) -> set[str]:
    """Return which ids a row gives to the person's address: of who acted, and of the account that it is about."""
    pairs = [("actor_email", "actor_id")]
    if raw["entity_type"]["S"] == "user":
        pairs.append(("entity_name", "entity_id"))
    return _ids_in(raw) & {raw[of]["S"] for name, of in pairs if person.address == _text(raw, name).casefold()}


def _ids_in(raw: Raw) -> set[str]:
    named = (raw["actor_id"]["S"], raw["entity_id"]["S"])
    return {one for one in named if all_keys.USER_ID.match(one) or stored.is_requester(one)}


def _mentions(person: DeskPerson, raw: Raw) -> bool:
    return any(person.mail.is_in(_text(raw, name)) for name in _TOLD)


# --- places in tickets ---


_WRITTEN: Final = {
    stored.SUMMARY: [field.name for field in SUMMARISED if isinstance(field, TextField)],
    stored.DETAIL: [DESCRIPTION.name],
}
Advance = Callable[[int], object]

_PARTS: Final = ("author", "requester", "resolver", "deleted_by")  # of an item: each an id, with a name beside it
CHANGED: Final = {"resolver": "assignee", "requester": "requester"}  # fields of people whose changes the history tells
_SETS: Final = {"followers": "follower", "muted_by": "muted the ticket"}  # of a summary: ids alone
LETTER_TO_THEM: Final = "letter as it came, which went to them too"
_AROUND: Final = 40  # characters that are shown on both sides of a mention


def counted(*, named: int, texts: int, tickets: int, beside: int, files: int = 0) -> str:
    """Return in words how often a person was found or replaced: "the name 9 times and the address in 1 text, in 4
    tickets and outside tickets", and how many files were removed."""
    parts = [_many(ngettext("the name %(num)s time", "the name %(num)s times", named), named)] if named else []
    parts += [_many(ngettext("the address in %(num)s text", "the address in %(num)s texts", texts), texts)] * bool(
        texts
    )
    parts += [_many(ngettext("%(num)s file", "%(num)s files", files), files)] * bool(files)
    if not parts:
        return _("nothing")
    where = [_many(ngettext("in %(num)s ticket", "in %(num)s tickets", tickets), tickets)] * bool(tickets)
    where += [_("outside tickets")] * bool(beside)
    return ", ".join(_joined(some) for some in (parts, where) if some)


def _many(text: str, count: int) -> str:
    return text % {"num": locales.current().number(count)}


def _joined(some: list[str]) -> str:
    return reduce(lambda one, other: _("%(one)s and %(other)s") % {"one": one, "other": other}, some)


def items_of(tenant: TenantContext, number: int) -> list[Raw]:
    return [*tenant.repository.query_all(RawItems(TICKETS), stored.ticket, number, consistent=True)]


def texts_of(raw: Raw) -> dict[str, str]:
    """Return the texts of an item of a ticket that people wrote, by the names of their attributes."""
    names = _WRITTEN.get(raw["sk"]["S"], ("body", "verb", DESCRIPTION.kept_as))
    return {name: _text(raw, name) for name in names}


def letter_texts_of(raw: Raw) -> dict[str, str | list[str]]:
    """Return what an item of a ticket keeps of the letter that it came as: texts, and lists of texts."""
    kept = raw.get("letter", {}).get("M", {})
    return {
        name: str(value["S"]) if "S" in value else [str(one["S"]) for one in value["L"]] for name, value in kept.items()
    }


def former_texts_of(raw: Raw) -> list[dict[str, str]]:
    """Return the earlier texts of a comment that was edited, each with who put another in its place."""
    told = raw.get("former_texts", {}).get("L", ())
    return [{name: str(value.get("S", "")) for name, value in one["M"].items()} for one in told]


def tags_of(raw: Raw) -> list[str]:
    """Return the tags of a ticket's summary, none of any other item."""
    return [str(tag["S"]) for tag in raw.get("tags", {}).get("L", ())]


def custom_of(raw: Raw) -> dict[str, str]:
    """Return the values of custom fields in a ticket's summary, none of any other item."""
    return {one: str(value["S"]) for one, value in raw.get(CUSTOM.name, {}).get("M", {}).items()}


def files_in(number: int, raw: Raw) -> Iterator[PersonalPlace]:
    """Yield the files of a description or a comment that the person wrote. They stay, but where they are to go."""
    for file in file_names_of(raw):
        yield PersonalPlace(gettext_noop("a file of theirs"), number, raw["sk"]["S"], excerpt=file, stays=True)


def files_sent(person: DeskPerson, items: Sequence[Raw]) -> list[str]:
    """Return the ids of the files that the person sent with these items of a ticket, which `PersonFound.files` lists.

    Files that are removed, and those that go with a ticket that is marked as spam, are left out.
    """
    has_described = _has_described(person, items)
    theirs = (
        one["M"]
        for raw in items
        if person.is_who(_text(raw, "author")) or (has_described and raw["sk"]["S"] == stored.DETAIL)
        for one in raw.get("files", {}).get("L", ())
        if "expires_at" not in raw
    )
    return [str(one["id"]["S"]) for one in theirs if one["state"]["S"] != scanning.REMOVED]


def _has_described(person: DeskPerson, items: Sequence[Raw]) -> bool:
    """Tell whether the person wrote the description: as the first requester, unless an agent opened the ticket by hand
    for somebody outside."""
    summary = next((raw for raw in items if raw["sk"]["S"] == stored.SUMMARY), {})
    changes = sorted((raw for raw in items if "former_requester" in raw), key=lambda raw: raw["sk"]["S"])
    first = _text(changes[0], "former_requester") if changes else _text(summary, "requester")
    is_by_hand = (_text(summary, "channel") or Channel.HAND) == Channel.HAND
    return person.is_who(first) and not (is_by_hand and stored.is_requester(first))


def file_names_of(raw: Raw) -> list[str]:
    return [str(one["M"]["name"]["S"]) for one in raw.get("files", {}).get("L", ())]


def copied_to(raw: Raw) -> list[str]:
    """Return the addresses that a letter went to in copy, of which an item of a ticket knows."""
    return [str(one["S"]) for one in raw.get("cc", {}).get("L", ())]


def has_asked(person: DeskPerson, pseudonym: str, raw: Raw) -> bool:
    """Tell whether an item of a ticket names the person as its requester, or as a former one, erased already or not."""
    named = (_text(raw, name) for name in ("requester", "former_requester"))
    return any(one == pseudonym or person.is_who(one) for one in named if one)


def letter_to(person: DeskPerson, raw: Raw) -> str:
    """Return the digest of the letter behind an item of a ticket, "" if it did not go to the person or is gone."""
    kept = letter_texts_of(raw)
    recipients = [*kept.get("cc", ()), *kept.get("to", ())]
    is_there = "deleted" not in kept
    return str(kept.get("digest", "")) if is_there and any(map(person.mail.is_in, recipients)) else ""


def names_in(person: DeskPerson, raw: Raw) -> set[str]:
    """Return by which names an item of a ticket knows the person: entries of its history tell of people by names."""
    found = {_text(raw, f"{name}_name") for name in _PARTS if person.is_who(_text(raw, name))}
    found |= {one.get("by_name", "") for one in former_texts_of(raw) if person.is_who(one.get("by", ""))}
    for field in CHANGED:
        if person.is_who(_text(raw, f"former_{field}")):
            found |= {one.get("before", "") for one in changes_of(raw) if one["field"] == field}
    return found - {""}


def people_told(raw: Raw, *when: str, of: Collection[str] = ("resolver", "requester")) -> set[str]:
    """Return the names of assignees and requesters, "before" a change or "after" it, that an entry tells of."""
    return {one.get(name, "") for one in changes_of(raw) if one["field"] in of for name in when} - {""}


def changes_of(raw: Raw) -> list[dict[str, str]]:
    """Return the changes that an entry of a ticket's history tells of: field, before and after of each."""
    told = raw.get("changes", {}).get("L", ())
    return [{name: str(value.get("S", "")) for name, value in one["M"].items()} for one in told]


def places(person: DeskPerson, names: Collection[str], number: int, raw: Raw) -> Iterator[PersonalPlace]:
    """Yield where the person, who goes by these names, occurs in one item of a ticket."""
    sort = raw["sk"]["S"]
    for name, kind in (("requester", "requester"), ("resolver", "assignee")):
        if person.is_who(_text(raw, name)):
            yield PersonalPlace(kind, number, sort)
    for name in sets_with(person, raw):
        yield PersonalPlace(_SETS[name], number, sort)
    if person.is_who(_text(raw, "author")):
        yield PersonalPlace(f"author: {_text(raw, 'kind')}", number, sort)
        yield from files_in(number, raw)
    if person.is_who(_text(raw, "deleted_by")):
        yield PersonalPlace(gettext_noop("deleted a comment"), number, sort)
    if any(person.is_who(one.get("by", "")) for one in former_texts_of(raw)):
        yield PersonalPlace(gettext_noop("edited a comment"), number, sort)
    if letter_to(person, raw):
        yield PersonalPlace(LETTER_TO_THEM, number, sort)
    for field, kind in CHANGED.items():
        is_former = person.is_who(_text(raw, f"former_{field}"))
        if is_former or not people_told(raw, "before", of=(field,)).isdisjoint(names):
            yield PersonalPlace(f"former {kind}", number, sort)
        if not people_told(raw, "after", of=(field,)).isdisjoint(names):
            yield PersonalPlace(f"new {kind}", number, sort)
    changed = {
        f"{one['field']}, {when}": one.get(when, "")
        for one in changes_of(raw)
        for when in ("before", "after")
        if not (one["field"] in CHANGED and one.get(when) in names)
    }
    shown = {f"{name}_name": _text(raw, f"{name}_name") for name in others_shown(person, raw)}
    tags = {"tags": ", ".join(tags_of(raw)), "copies of a letter": ", ".join(copied_to(raw))}
    tags["earlier texts"] = "\n".join(one.get("body", "") for one in former_texts_of(raw))
    tags |= {f"custom field {one}": text for one, text in custom_of(raw).items()}
    tags["names of files"] = ", ".join(file_names_of(raw))
    tags |= {
        f"letter, {name}": text if isinstance(text, str) else "\n".join(text)
        for name, text in letter_texts_of(raw).items()
    }
    for name, text in (texts_of(raw) | tags | changed | shown).items():
        for begin, end in islice(person.mail.mentions(text), 1):
            around = text[max(0, begin - _AROUND) : end + _AROUND]
            yield PersonalPlace(f"text: {name}", number, sort, True, " ".join(around.split()))


def sets_with(person: DeskPerson, raw: Raw) -> list[str]:
    """Return which sets of people in a ticket's summary have the person, by the names of their attributes."""
    return [name for name in _SETS if not ids_in(raw, name).isdisjoint(person.user_ids)]


def ids_in(raw: Raw, name: str) -> set[str]:
    return {str(one) for one in raw.get(name, {}).get("SS", ())}


def others_shown(person: DeskPerson, raw: Raw) -> list[str]:
    """Return in which parts somebody else is named, such as a key whose name may have an address in it."""
    return [name for name in _PARTS if f"{name}_name" in raw and not person.is_who(_text(raw, name))]


def _text(raw: Raw, name: str) -> str:
    return str(raw.get(name, {}).get("S", ""))
