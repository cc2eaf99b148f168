"""Make, change and revoke API keys. Admins of a tenant do this; key_rolling.py replaces a key by another.

Each change is one transaction with its row of the audit trail, which depends on the admin still being one. Only the
digest of a key is stored: the text is returned once, when it is made.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock, plain_text
from portal.dynamo.store import Action, Store, Transaction
from portal.errors import Conflict, Invalid, NotFound, TransactionRefused
from portal.schema import keys
from tenants.api_keys import key_restrictions, key_text, scopes
from tenants.api_keys.scopes import Scope
from tenants.api_keys.stored import ApiKeyItem
from tenants.audit_trail import browsing, recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalData, PersonalPlace

MOST: Final = 50  # keys of one tenant that work; simultaneous forms may make some more
MOST_KEPT: Final = 500  # with those that ended of late: a list, and the making of a key, read them all
NAME_LIMIT: Final = 60  # characters
PLACES_LIMIT: Final = 20  # networks, and origins, of one key
LONGEST: Final = timedelta(days=3653)
KEPT: Final = timedelta(days=30)  # after its end
CHANGED: Final = gettext_noop("Somebody else has just changed this key. Please check and try again.")


class KeyChoiceInvalid(Invalid):
    """Say that a key cannot be what was chosen. `faults` holds all that is wrong, each with its field."""

    def __init__(self, faults: Sequence[Invalid]) -> None:
        super().__init__(" ".join(fault.message for fault in faults), field=faults[0].field)
        self.faults = tuple(faults)


@dataclass(frozen=True)
class KeyChoice:
    """Hold what an admin chooses for a key. Raises KeyChoiceInvalid for what cannot be.

    `expires_at` is None for a key that works until it is revoked.
    """

    name: str
    scopes: frozenset[Scope]
    expires_at: datetime | None = None
    addresses: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        faults = [*self._faults()]
        for field, read in (("addresses", key_restrictions.network), ("origins", key_restrictions.origin)):
            places = getattr(self, field)
            if len(places) > PLACES_LIMIT:
                faults.append(
                    Invalid(_("A key can have up to %(limit)s of them.") % {"limit": PLACES_LIMIT}, field=field)
                )
                continue
            stored = []
            for place in places:
                try:
                    stored.append(read(place))
                except Invalid as fault:
                    faults.append(fault)
            # As they are stored, each once.
            object.__setattr__(self, field, tuple(dict.fromkeys(stored)))
        if faults:
            raise KeyChoiceInvalid(faults)

    def _faults(self) -> Iterator[Invalid]:
        if not 1 <= len(self.name) <= NAME_LIMIT:
            yield Invalid(_("Use 1-%(limit)s characters for the name.") % {"limit": NAME_LIMIT}, field="name")
        elif fault := plain_text.name_fault(self.name):
            yield Invalid(fault, field="name")
        if not self.scopes:
            yield Invalid(_("Choose at least one scope."), field="scopes")
        if self.expires_at is not None and self.expires_at <= clock.now():
            yield Invalid(_("Choose a day that is not over."), field="expires_on")
        if self.expires_at is not None and self.expires_at > clock.now() + LONGEST:
            yield Invalid(_("Choose a day within the next ten years."), field="expires_on")


def listed(repository: Store, *, consistent: bool = False) -> list[ApiKeyItem]:
    """Return a tenant's keys, the latest first, ended ones for KEPT: one Query up to 1 MB, which is some 1,500."""
    found = repository.query_all(ApiKeyItem, keys.tenant, consistent=consistent)
    return sorted(found, key=lambda key: (key.created_at, key.api_key_prefix), reverse=True)


def find(repository: Store, prefix: str) -> ApiKeyItem:
    """Return one key: one consistent GetItem. Raises NotFound."""
    found = None
    if key_text.is_prefix(prefix):
        found = repository.get(ApiKeyItem, keys.tenant, sort=prefix, consistent=True)
    if found is None:
        raise NotFound(_("There is no such API key."))
    return found


def works(key: ApiKeyItem) -> bool:
    """Tell whether a key is neither revoked nor expired."""
    return not key.revoked_at and (not key.expires_at or key.expires_at > clock.stamp())


def create(tenant: TenantContext, *, choice: KeyChoice, request_id: str, by: Actor) -> tuple[ApiKeyItem, str]:
    """Make a key and return it with its text, which is not shown again.

    Raises Conflict where there are MOST already, where a working key has the name, and for a form that has made its
    key before.
    """
    key, text = new(tenant, choice, prefix=key_text.new_prefix(request_id), key_id=uuid.uuid4().hex)

    def build() -> Transaction:
        others = listed(tenant.repository, consistent=True)
        if any(other.api_key_prefix == key.api_key_prefix for other in others):
            raise Conflict(_("This key has been made already. It was shown then; you can roll it."))
        _refuse_too_many(others, at_work=others)
        _refuse_taken_name(others, key)
        transaction = Transaction()
        transaction.put(key, condition=ApiKeyItem.api_key_prefix.does_not_exist())
        return transaction

    chosen = {name: value for name, value in _shown(key).items() if value}
    commit(tenant, build, entry(key, AuditAction.API_KEY_CREATED, by, after=chosen))
    return key, text


def change(tenant: TenantContext, *, prefix: str, choice: KeyChoice, version: int, by: Actor) -> bool:
    """Store what an admin chose anew, and tell whether that changed anything. It counts at the next call.

    `version` is the one that the form showed. Raises NotFound, and Conflict for a key that has ended or been replaced.
    """
    key = find(tenant.repository, prefix)
    refuse_ended(key)
    if key.version != version:
        raise Conflict(_(CHANGED))
    before = _shown(key)
    _apply(key, choice)
    after = _shown(key)
    changed = {name for name in after if before[name] != after[name]}
    if not changed:
        return False

    def build() -> Transaction:
        if "name" in changed:
            _refuse_taken_name(listed(tenant.repository, consistent=True), key)
        return updated(
            key,
            [
                ApiKeyItem.name.set(key.name),
                ApiKeyItem.scopes.set(key.scopes),
                ApiKeyItem.addresses.set(key.addresses),
                ApiKeyItem.origins.set(key.origins),
                *ending(choice.expires_at),
            ],
        )

    was, now = ({name: values[name] for name in changed} for values in (before, after))
    commit(tenant, build, entry(key, AuditAction.API_KEY_CHANGED, by, before=was, after=now))
    return True


def revoke(tenant: TenantContext, *, prefix: str, by: Actor) -> ApiKeyItem:
    """End a key at once: its next call is refused. Raises NotFound, and Conflict for a key that has ended."""
    key = find(tenant.repository, prefix)
    if not works(key):
        raise Conflict(_("This key does not work any more."))
    now = clock.now()
    kept_until = int((now + KEPT).timestamp())
    actions = [ApiKeyItem.revoked_at.set(clock.stamp(now)), ApiKeyItem.kept_until.set(kept_until)]
    row = entry(key, AuditAction.API_KEY_REVOKED, by, before={"prefix": prefix})
    commit(tenant, lambda: updated(key, actions), row)
    return key


def _refuse_too_many(stored: Sequence[ApiKeyItem], *, at_work: Sequence[ApiKeyItem], is_rolled: bool = False) -> None:
    """Raise Conflict where a tenant has as many keys as are kept, or as can work beside a new one."""
    if sum(map(works, at_work)) >= MOST:
        message = _("A desk can have up to %(most)s keys. Revoke one that is not used.")
        if is_rolled:
            message = _(
                "A desk can have up to %(most)s keys. Revoke one that is not used, or let this one end at once."
            )
        raise Conflict(message % {"most": MOST})
    if len(stored) >= MOST_KEPT:
        raise Conflict(
            _("This desk has made %(most_kept)s keys in %(days)s days. Try again in some days.")
            % {"most_kept": MOST_KEPT, "days": KEPT.days}
        )


def refuse_ended(key: ApiKeyItem) -> None:
    """Raise Conflict for a key that is not to be changed any more."""
    if not works(key) or key.replaced_by:
        raise Conflict(_("This key has ended or been replaced, and cannot be changed."))


def new(tenant: TenantContext, choice: KeyChoice, *, prefix: str, key_id: str) -> tuple[ApiKeyItem, str]:
    """Return a key that is not stored yet, and its text."""
    text = key_text.new(tenant.tenant_id, prefix)
    key = ApiKeyItem(
        tenant.tenant_id,
        prefix,
        key_id=key_id,
        digest=key_text.digest(text),
        created_at=clock.stamp(),
        created_by=tenant.user_name,
    )
    _apply(key, choice)
    return key, text


def _apply(key: ApiKeyItem, choice: KeyChoice) -> None:
    key.name, key.scopes = choice.name, sorted(scope.value for scope in choice.scopes)
    key.addresses, key.origins = [*choice.addresses], [*choice.origins]
    key.expires_at = clock.stamp(choice.expires_at) if choice.expires_at else None
    key.kept_until = int((choice.expires_at + KEPT).timestamp()) if choice.expires_at else None


def ending(at: datetime | None) -> list[Action]:
    """Return the updates by which a stored key ends at a moment, or does not end."""
    if at is None:
        return [ApiKeyItem.expires_at.remove(), ApiKeyItem.kept_until.remove()]
    kept_until = int((at + KEPT).timestamp())
    return [ApiKeyItem.expires_at.set(clock.stamp(at)), ApiKeyItem.kept_until.set(kept_until)]


def updated(key: ApiKeyItem, actions: Sequence[Action]) -> Transaction:
    """Return the transaction that updates a key if nobody has changed it since it was read."""
    transaction = Transaction()
    grown = ApiKeyItem.version.set(int(key.version) + 1)
    unchanged = ApiKeyItem.version == int(key.version)
    transaction.update(ApiKeyItem(key.tenant_id, key.api_key_prefix), [*actions, grown], condition=unchanged)
    return transaction


def commit(tenant: TenantContext, build: Callable[[], Transaction], row: AuditEntry) -> None:
    """Write what `build` returns with its row of the audit trail, by the right of who is at work. Raises Conflict."""

    def whole() -> Transaction:
        transaction = build()
        if tenant.user_id:  # a command is nobody's
            member_changes.require_role(transaction, tenant)
        return transaction

    try:
        recording.commit_built(whole, [row])
    except TransactionRefused as refused:
        raise Conflict(_(CHANGED)) from refused


def entry(key: ApiKeyItem, action: AuditAction, by: Actor, **values: Any) -> AuditEntry:
    """Return the row of the audit trail for what is done to a key."""
    return AuditEntry(key.tenant_id, action, by, "api_key", key.key_id, key.name, **values)


def _refuse_taken_name(others: Sequence[ApiKeyItem], key: ApiKeyItem) -> None:
    """Raise Conflict where another working key has this name: histories could not tell the two apart."""
    if any(o.key_id != key.key_id and o.name.casefold() == key.name.casefold() for o in others if works(o)):
        raise Conflict(_("Another key has this name. Choose one that says what this key is for."), field="name")


def _in_words(scopes: str) -> str:
    return "; ".join(_(Scope(one).summary) if one in set(Scope) else one for one in scopes.split(", "))


browsing.declare_values(_in_words, "scopes")


def _shown(key: ApiKeyItem) -> dict[str, str]:
    """Return what the audit trail says of a key; nothing of it helps to use the key."""
    return {
        "prefix": key.api_key_prefix,
        "name": key.name,
        "scopes": ", ".join(key.scopes),
        "expires": key.expires_at or "",
        "addresses": ", ".join(key.addresses),
        "origins": ", ".join(key.origins),
    }


def roll(
    tenant: TenantContext, *, prefix: str, version: int, grace: timedelta, expires_at: datetime | None, by: Actor
) -> tuple[ApiKeyItem, str]:
    """Make the key that replaces this one, which works until `grace` is over or its own end comes.

    Returns the new key, which ends at `expires_at` if at all, with its text, which is not shown again. `version` is
    that of the old key on the form: a form that is sent twice rolls once. Raises NotFound; Conflict for a key that has
    ended or been replaced; and Invalid.
    """
    old = find(tenant.repository, prefix)
    if old.replaced_by:
        raise Conflict(_("This key has been rolled already. The new one was shown then; you can roll that."))
    refuse_ended(old)
    if old.version != version:
        raise Conflict(_(CHANGED))
    choice = KeyChoice(
        name=old.name,
        scopes=scopes.named(old.scopes),
        expires_at=expires_at,
        addresses=tuple(old.addresses),
        origins=tuple(old.origins),
    )
    key, text = new(tenant, choice, prefix=key_text.new_prefix(uuid.uuid4().hex), key_id=old.key_id)
    end = clock.now() + grace
    if old.expires_at:
        end = min(end, clock.parse(old.expires_at))

    def build() -> Transaction:
        others = listed(tenant.repository, consistent=True)
        at_work = [other for other in others if other.api_key_prefix != prefix or end > clock.now()]
        _refuse_too_many(others, at_work=at_work, is_rolled=True)
        actions = [ApiKeyItem.replaced_by.set(key.api_key_prefix), *ending(end)]
        transaction = updated(old, actions)
        transaction.put(key, condition=ApiKeyItem.api_key_prefix.does_not_exist())
        return transaction

    row = entry(
        old,
        AuditAction.API_KEY_ROLLED,
        by,
        before={"prefix": prefix},
        after={
            "prefix": key.api_key_prefix,
            "expires": key.expires_at or "never",
            "old_key_works_until": clock.stamp(end),
        },
    )
    commit(tenant, build, row)
    return key, text


def with_rolled(repository: Store, prefix: str) -> tuple[ApiKeyItem, list[ApiKeyItem]]:
    """Return a key, and the keys that it replaced or that replaced it, the latest first, those that ended for KEPT.

    Costs one consistent Query. Raises NotFound.
    """
    stored = listed(repository, consistent=True)
    found = next((key for key in stored if key.api_key_prefix == prefix), None)
    if found is None:
        raise NotFound(_("There is no such API key."))
    return found, [key for key in stored if key.key_id == found.key_id and key is not found]


def _places(person: DeskPerson, names: Collection[str], key: ApiKeyItem) -> Iterator[PersonalPlace]:
    if key.created_by in names:
        yield PersonalPlace(gettext_noop("maker of an API key"), excerpt=key.name)
    if person.mail.is_in(key.name):
        yield PersonalPlace(gettext_noop("API key, its name"), is_text=True, excerpt=key.name)


def _replace(tenant: TenantContext, new: NewName, key: ApiKeyItem) -> None:
    actions: list[Action] = [ApiKeyItem.created_by.set(new.name)] if key.created_by in new.names else []
    if new.texts:
        actions.append(ApiKeyItem.name.set(new.person.mail.replaced(key.name, new.name)[:NAME_LIMIT]))
    recording.commit(updated(key, actions), [])


PEOPLE: Final = PersonalData(lambda tenant, person: listed(tenant.repository, consistent=True), _places, _replace)
