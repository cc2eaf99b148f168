"""Say who somebody is to a desk: an address, with all ids by which the desk knows it.

An account has one id here. Where a desk was brought in from another installation, or an account was removed and made
anew, tickets still name the former id: the desk's audit trail tells which ids an address has had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Final

from portal.errors import Invalid
from portal.schema import keys as all_keys
from tenants.audit_trail.erased_people import ErasedPeople, label
from tenants.audit_trail.recording import AuditAction
from tenants.audit_trail.stored import AUDIT, audited_at_key
from tenants.sign_in import accounts
from tenants.sign_in.stored import folded
from tenants.tenancy.context import TenantContext
from tickets.privacy.mail_addresses import MailAddress

Raw = dict[str, Any]

_TOLD: Final = ("actor_email", "entity_name", "before", "after")  # in a row of the trail, where an address may stand


@dataclass(frozen=True)
class DeskPerson:
    """Somebody as a desk knows them: by address, by the `user_ids` that it has had, and by the name of the account.

    `trail_rows` is how many rows of the audit trail name them, and `trail_shown` in how many of those the address is
    read: since an erasure, or in all where there was none. `erased_as` is the pseudonym's name where an erasure
    has begun, and `erased_at` the stamp of when the last one was recorded; "" and none stand for what is not known.
    """

    address: str
    user_ids: tuple[str, ...] = ()
    name: str = ""
    trail_rows: int = 0
    trail_shown: int = 0
    erased_as: str = ""
    erased_at: str = ""

    @classmethod
    def load(cls, told: dict[str, Any]) -> DeskPerson:
        """Return what `asdict` made, also where it was JSON meanwhile. Raises ValueError for what another version has
        made."""
        return cls(**{**of_this_form(cls, told), "user_ids": tuple(told["user_ids"])})

    @cached_property
    def mail(self) -> MailAddress:
        """Return what finds the address in texts."""
        return MailAddress(self.address)

    def is_who(self, user_id: str) -> bool:
        """Tell whether an id, "" for nobody, is one of this person's."""
        return user_id in self.user_ids


def of_this_form(kind: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Return what was told of a dataclass, which has been to a browser and back. Raises ValueError where that is not
    exactly what it has: between the pages another version of the portal may have come."""
    if not isinstance(told, dict) or told.keys() != {field.name for field in fields(kind)}:
        raise ValueError(f"this is no {kind.__name__} of this version")
    return told


def person_of(tenant: TenantContext, address: str) -> DeskPerson:
    """Return who has this address: the account, and each id that the audit trail names for the address.

    Costs two reads and the whole trail. Raises Invalid for what is no address.
    """
    try:
        known = folded(address)
    except ValueError as error:
        raise Invalid("That is not an e-mail address.", field="address") from error
    account = accounts.find_by_email(known)
    erased = ErasedPeople.parse(tenant.erased)
    pseudonym = erased.pseudonym(known)
    person = DeskPerson(
        known,
        (account.id,) if account else (),
        account.name if account else "",
        erased_as=label(pseudonym) if pseudonym in erased.pseudonyms else "",
    )
    trail = tenant.repository.query_all(AUDIT, all_keys.tenant)
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
    for raw in tenant.repository.query_all(AUDIT, all_keys.tenant):
        if _mentions(person, raw) or not _ids_in(raw).isdisjoint(person.user_ids):
            yield raw


def _ids_for(person: DeskPerson, raw: Raw) -> set[str]:
    """Return which ids a row gives to the person's address: of who acted, and of the account that it is about."""
    pairs = [("actor_email", "actor_id")]
    if raw["entity_type"]["S"] == "user":
        pairs.append(("entity_name", "entity_id"))
    return _ids_in(raw) & {raw[of]["S"] for name, of in pairs if person.address == _text(raw, name).casefold()}


def _ids_in(raw: Raw) -> set[str]:
    return {one for one in (raw["actor_id"]["S"], raw["entity_id"]["S"]) if all_keys.USER_ID.match(one)}


def _mentions(person: DeskPerson, raw: Raw) -> bool:
    return any(person.mail.is_in(_text(raw, name)) for name in _TOLD)


def _text(raw: Raw, name: str) -> str:
    return str(raw.get(name, {}).get("S", ""))
