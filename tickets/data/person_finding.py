"""Look for one person through all tickets of a desk, a stretch of numbers at a time, and add up what is found.

A command takes all stretches in one go. A page takes one for each request, so that no request lasts long however many
tickets there are; what was found so far goes to the browser and back as `dumped`, under the portal's signature.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.client import fan_out
from portal.errors import Invalid
from portal.plain_text import amount
from tenants.membership import invitations, members
from tenants.sign_in.stored import folded
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, PersonalPlace, of_this_form, personal_data
from tickets.data import desk_person
from tickets.data.desk_person import Advance, Raw
from tickets.requesters import requesters
from tickets.ticket import stored
from tickets.ticket.fields import CHOICES
from tickets.verification.recount import AT_ONCE, last_number

MOST_MENTIONS: Final = 30  # texts that are kept to be shown
_TEXT: Final = "text"
NOT_SEEN: Final = gettext_noop(
    "Letters as they came are found by their sender, and filed ones by the addresses in To and Cc. Their text "
    "and their files are not searched; they are deleted with the letter."
)


@dataclass
class PersonFound:
    """Hold what was found in the tickets up to the number `reached`, of `last`, and at the end beside the tickets.

    `tickets` is how many of them have a place. `kinds` counts the places in them by kind, those of texts under "text".
    `beside` and `beside_texts` have the places outside of tickets as they are shown, `stays` what no erasure replaces,
    and `files` the first files that the person sent, which stay too.
    `names` are those by which the desk knows the person, `others` those of assignees that its histories tell of
    beside. `mentions` are the first texts with the address, as (ticket number, kind, excerpt).
    """

    person: DeskPerson
    last: int
    reached: int = 0
    tickets: int = 0
    is_member: bool = False
    kinds: Counter[str] = field(default_factory=Counter)
    beside: list[str] = field(default_factory=list)
    beside_texts: list[str] = field(default_factory=list)
    stays: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    mentions: list[tuple[int, str, str]] = field(default_factory=list)

    @classmethod
    def load(cls, told: dict[str, Any]) -> PersonFound:
        """Return what `dumped` made. Raises ValueError for what another version has made."""
        return cls(
            **{
                **of_this_form(cls, told),
                "person": DeskPerson.load(told["person"]),
                "kinds": Counter(told["kinds"]),
            }
        )

    def dumped(self) -> dict[str, Any]:
        return {**vars(self), "person": asdict(self.person), "kinds": dict(self.kinds)}

    @property
    def is_whole(self) -> bool:
        return self.reached >= self.last

    @property
    def named(self) -> int:
        """Return how often the desk names the person: what an erasure replaces in any case."""
        return self.kinds.total() - self.kinds[_TEXT] + len(self.beside)

    @property
    def texts(self) -> int:
        """Return in how many texts the address stands, which an erasure replaces where that is wished."""
        return self.kinds[_TEXT] + len(self.beside_texts)

    @property
    def counted(self) -> str:
        """Return in words what an erasure would replace."""
        beside = len(self.beside) + len(self.beside_texts)
        return desk_person.counted(named=self.named, texts=self.texts, tickets=self.tickets, beside=beside)

    @property
    def is_to_be_erased(self) -> bool:
        """Tell whether an erasure would do something: replace what is found, have the trail show a pseudonym, or end
        what one has begun."""
        return bool(self.texts or self._is_to_be_renamed)

    @property
    def is_known(self) -> bool:
        """Tell whether the desk knows anything of the person, also what no erasure changes."""
        return bool(self.is_to_be_erased or self.stays or self.person.erased_as)

    def refuse_unknown(self) -> None:
        """Raise Invalid where a whole search has found nothing: an answer about a mistyped address would be a false
        one."""
        if not self.is_known:
            address = self.person.address
            said = _("This desk stores nothing about the address %(address)s. Nothing was exported.") % {
                "address": address
            }
            raise Invalid(said, field="address")

    @property
    def has_texts_alone(self) -> bool:
        """Tell whether an erasure would do something in texts alone."""
        return bool(self.texts) and not self._is_to_be_renamed

    @property
    def _is_to_be_renamed(self) -> bool:
        person = self.person
        is_in_trail = person.trail_shown if person.erased_as else person.trail_rows
        return bool(self.named or is_in_trail or (person.erased_as and not person.erased_at))

    def add(self, number: int, items: list[Raw]) -> list[PersonalPlace] | None:
        """Add what the items of one ticket say, and return the places.

        None says that the ticket has taught a name that tickets before it tell of, where it was nobody's yet.
        """
        names = {name for raw in items for name in desk_person.names_in(self.person, raw)}.difference(self.names)
        self.names = sorted(names.union(self.names))
        if not names.isdisjoint(self.others):
            return None
        told = {name for raw in items for name in desk_person.people_told(raw, "before", "after")}
        self.others = sorted(told.union(self.others).difference(self.names))
        found = [place for raw in items for place in desk_person.places(self.person, self.names, number, raw)]
        if any(place.kind == "requester" for place in found):  # whose description it is
            found += [
                file for raw in items if raw["sk"]["S"] == stored.DETAIL for file in desk_person.files_in(number, raw)
            ]
        self.files += [str(place) for place in found if place.stays][: MOST_MENTIONS - len(self.files)]
        counted = [place for place in found if not place.stays]
        self.tickets += bool(counted)
        for place in counted:
            self.kinds[_TEXT if place.is_text else place.kind] += 1
            if place.is_text and len(self.mentions) < MOST_MENTIONS:
                self.mentions.append((number, place.kind, place.excerpt))
        self.reached = number
        return found

    def add_beside(self, places: list[PersonalPlace]) -> None:
        self.stays = [str(place) for place in places if place.stays]
        self.beside = [str(place) for place in places if not (place.stays or place.is_text)]
        self.beside_texts = [str(place) for place in places if place.is_text and not place.stays]
        self.is_member = any(place.kind == members.PLACE for place in places)


def begin(tenant: TenantContext, person: DeskPerson) -> PersonFound:
    """Return that nothing was found yet. Costs a read of the last ticket number."""
    return PersonFound(person, last_number(tenant.repository), names=[person.name] if person.name else [])


def go_on(
    tenant: TenantContext, found: PersonFound, *, most: int | None = None, advance: Advance = lambda numbers: None
) -> Iterator[PersonalPlace | None]:
    """Look through the next `most` numbers, or all that are left: a Query for each; behind the last one beside the
    tickets, a Query of each of three rooms. Yields each place as it is met.

    Entries of old and of imported tickets tell of assignees by name alone. Where a later ticket teaches such a name,
    None is yielded, and the tickets are looked through once more.
    """
    until = found.last if most is None else min(found.last, found.reached + most)
    for number, items in tickets(tenant, range(found.reached + 1, until + 1)):
        places = found.add(number, items)
        if places is None:
            found.reached, found.tickets, found.kinds, found.mentions = 0, 0, Counter(), []
            found.files = []
            yield None
            if most is None:
                yield from go_on(tenant, found, advance=advance)
            return
        yield from places
        advance(1)
    if found.is_whole:
        beside = [*places_beside(tenant, found.person, found.names)]
        found.add_beside(beside)
        yield from beside


def tickets(tenant: TenantContext, numbers: range) -> Iterator[tuple[int, list[Raw]]]:
    """Yield the raw items of each ticket, AT_ONCE of them read at the same time."""
    for first in range(numbers.start, numbers.stop, AT_ONCE):
        several = range(first, min(first + AT_ONCE, numbers.stop))
        reads = [partial(desk_person.items_of, tenant, number) for number in several]
        yield from zip(several, fan_out(reads), strict=True)


def places_beside(tenant: TenantContext, person: DeskPerson, names: Collection[str]) -> Iterator[PersonalPlace]:
    """Yield where the person, who goes by these names, occurs beside the tickets. The audit trail is never changed."""
    for kind in personal_data():
        for item in kind.read(tenant, person):
            yield from kind.places(person, names, item)
    if rows := person.trail_rows:
        shown = f", {person.trail_shown:,} of them since the erasure" * bool(person.erased_as and person.trail_shown)
        yield PersonalPlace(f"audit trail, {amount(rows, 'row')}{shown}", stays=True)


# --- the document ---


Json = dict[str, Any]

_CHOICES: Final = [choice.name for choice in CHOICES]


def pieces(tenant: TenantContext, person: DeskPerson, *, advance: Advance = lambda numbers: None) -> Iterator[str]:
    """Yield the document piece by piece: membership, requester, invitations, tickets asked for or assigned, what the
    person wrote, where others wrote the address, what stands beside the tickets, and the rows of the audit trail.

    Costs a Query for each ticket number, and the trail.
    """
    names = {person.name} - {""}
    head = {
        "desk": {"name": tenant.name, "slug": tenant.slug},
        "made_at": clock.stamp(),
        "address": person.address,
        "not_searched": NOT_SEEN,
        "user_ids": [*person.user_ids],
        "erased_as": person.erased_as or None,
        "membership": _membership(tenant, person),
        "requester": [
            {
                "name": one.name,
                "addresses": [*one.addresses],
                "organisation": one.organisation,
                "language": one.language,
                "notes": one.notes,
                "known_since": one.created_at,
            }
            for one in requesters.stored_people(tenant, person.requesters)
        ],
        "invitations": [
            {"role": invite.role, "invited_by": invite.invited_by_name, "sent_at": invite.sent_at}
            for invite in invitations.pending(tenant.repository)
            if folded(invite.email) == person.address
        ],
    }
    yield f"{_text(head)[:-2]},\n"
    yield from _list("tickets", _tickets(tenant, person, names, advance))
    yield ",\n"
    yield from _list("places", map(str, places_beside(tenant, person, names)))
    yield ",\n"
    yield from _list("audit_trail", map(_plain, desk_person.trail_rows(tenant, person)))
    yield "\n}\n"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _list(name: str, members: Iterable[Json | str]) -> Iterator[str]:
    yield f' "{name}": ['
    for number, one in enumerate(members):
        yield f"{',' if number else ''}\n{_text(one)}"
    yield "]"


def _membership(tenant: TenantContext, person: DeskPerson) -> Json | None:
    for user_id in person.accounts:
        if member := members.member(tenant.repository, user_id):
            told: Json = {"name": member.name, "email": member.email, "role": member.role.value}
            return told | {"signature": member.signature, "profile": asdict(member.profile)}
    return None


def _tickets(tenant: TenantContext, person: DeskPerson, names: set[str], advance: Advance) -> Iterator[Json]:
    """Yield what the tickets tell, and add to the names by which they know the person."""
    for number, items in tickets(tenant, range(1, last_number(tenant.repository) + 1)):
        names.update(name for raw in items for name in desk_person.names_in(person, raw))
        told = [one for raw in items if (one := _told(person, names, number, raw))]
        if told:
            yield {"number": number, "items": told}
        advance(1)


def _told(person: DeskPerson, names: set[str], number: int, raw: Raw) -> Json | None:
    """Return what an item says of the person, None where it says nothing.

    Texts of other people are included only if they contain the address."""
    if not any(desk_person.places(person, names, number, raw)):
        return None
    plain = _plain(raw)
    roles = [name for name in ("requester", "resolver", "author") if person.is_who(plain.get(name, ""))]
    mentions = {name: text for name, text in desk_person.texts_of(raw).items() if person.mail.is_in(text)}
    wrote = desk_person.texts_of(raw) if roles and roles != ["resolver"] else {}
    roles += desk_person.sets_with(person, raw)
    kept = (
        "kind",
        "group",
        "at",
        *_CHOICES,
        "created_at",
        "verb",
        "changes",
        "files",
        *(f"{role}_name" for role in roles),
    )
    what = "ticket" if raw["sk"]["S"] in (stored.SUMMARY, stored.DETAIL) else "history"
    told = {"of": what, "as": roles} | {name: plain[name] for name in kept if plain.get(name)} | wrote | mentions
    told |= {"tags": tags} if (tags := desk_person.tags_of(raw)) else {}
    told |= {"custom": custom} if (custom := desk_person.custom_of(raw)) else {}
    copied = any(map(person.mail.is_in, desk_person.copied_to(raw)))
    return told | {"copied": True} if copied else told


def _plain(raw: Raw) -> Json:
    """Return the texts of an item, and the changes that an entry tells of."""
    plain: Json = {name: value["S"] for name, value in raw.items() if "S" in value}
    if changes := raw.get("changes", {}).get("L"):
        plain["changes"] = [{name: value["S"] for name, value in one["M"].items()} for one in changes]
    return {name: value for name, value in plain.items() if name not in ("pk", "sk", "tenant_id", "tenant_actor")}
