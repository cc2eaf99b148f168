"""Change the settings of a desk: its name and slug, the defaults of its forms, and how members sign in.

Name and slug are copied into the membership of every member, so that the list of a person's desks costs one Query
however many they are. The tenant's own item, the uniqueness of its slug, its directory entry and the audit row change
in one transaction. The copies follow in transactions of COPIES, and saving again completes an interrupted run. Until
then somebody may read the old name in the list of desks and nowhere else, because pages have the name from the tenant's
own item. To read the item of each tenant for the list would cost one more round trip each time that somebody chooses a
desk, for something that happens once a year.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, gettext_noop

from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Action as UpdateAction
from portal.dynamo.store import Transaction, chunked
from portal.errors import Conflict, Invalid, TransactionRefused
from tenants.audit_trail import browsing, recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.lifecycle import tenant_lifecycle
from tenants.membership import auditors, member_changes, members
from tenants.sign_in import accounts
from tenants.sign_in.stored import UniqueItem
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import LANGUAGE, ZONE, TenantContext
from tenants.tenancy.stored import DirectoryItem, MembershipItem, TenantItem, slug_key


@dataclass(frozen=True)
class Default:
    """A value that has a default. `choices` are (value, label); `initial` applies until an owner chooses another."""

    name: str
    label: str | Promise
    choices: tuple[tuple[str, str | Promise], ...]
    initial: str


_declared: Final[dict[str, Default]] = {}
_CHANGED: Final = gettext_noop("Somebody else has just changed these settings. Please check and try again.")


def declare_default(default: Default) -> None:
    """Let owners choose a default for one more value."""
    _declared[default.name] = default
    browsing.declare_values(browsing.codes(dict(default.choices)), default.name.replace("_", " "))


def declared_defaults() -> tuple[Default, ...]:
    return tuple(_declared.values())


def default_value(tenant: TenantContext, name: str) -> str:
    """Return the default of one value. A stored value that is no longer a choice is ignored."""
    default = _declared[name]
    stored = _read(tenant.defaults).get(name, "")
    return stored if stored in dict(default.choices) else default.initial


def change_defaults(tenant: TenantContext, *, values: Mapping[str, str], by: Actor) -> bool:
    """Store these defaults, and tell whether that changed anything.

    Raises Invalid for a value that is no choice, and Conflict if somebody else was faster or the actor's role changed.
    """
    for name, chosen in values.items():
        if name not in _declared or chosen not in dict(_declared[name].choices):
            raise Invalid(gettext("Choose a value from the list."), field=name)
    stored = tenant_directory.get(tenant.tenant_id)
    now = _read(stored.defaults)
    before = {name: now.get(name, _declared[name].initial) for name in values}
    changed = {name for name, chosen in values.items() if chosen != before[name]}
    if not changed:
        return False
    transaction = Transaction()
    seen = TenantItem.defaults == stored.defaults if stored.defaults else TenantItem.defaults.does_not_exist()
    text = json.dumps({**now, **values}, sort_keys=True)
    transaction.update(stored, [TenantItem.defaults.set(text)], condition=seen & TenantItem.tenant_id.exists())
    member_changes.require_role(transaction, tenant)
    told = [{name: some[name] for name in changed} for some in (before, values)]
    entry = AuditEntry.of_tenant(stored, AuditAction.TENANT_DEFAULTS_CHANGED, by, *told)
    recording.commit(transaction, [entry], refused=Conflict(gettext(_CHANGED)))
    return True


# The zone of the desk's days, reports and "today": see TenantContext.zone.
declare_default(Default(ZONE, gettext_lazy("Time zone of the desk"), clock.choices(), clock.UTC_NAME))
BROWSER: Final = "browser"
_LANGUAGES: Final[tuple[tuple[str, str | Promise], ...]] = (
    (BROWSER, gettext_lazy("That of each person's browser")),
    *settings.LANGUAGES,
)
# The language of members who have chosen none: see TenantContext.chosen_language.
declare_default(Default(LANGUAGE, gettext_lazy("Language of the desk"), _LANGUAGES, BROWSER))


def _read(text: str | None) -> dict[str, str]:
    return json.loads(text) if text else {}


_WORDS: Final = {True: gettext_noop("demanded"), False: gettext_noop("not demanded")}


def demand_second_factor(tenant: TenantContext, *, demanded: bool, by: Actor) -> bool:
    """Demand a second factor of all members, or end that, and tell whether it changed anything.

    It holds from each member's next click; API keys are not people. Raises Conflict where the actor has none, and would
    be the first one kept out, or where the actor's role changed.
    """
    stored = tenant_directory.get(tenant.tenant_id)
    before = bool(stored.needs_second_factor)
    if before == demanded:
        return False
    if demanded and not _has_factor(by):
        raise Conflict(gettext("Add a second factor to your own account first: you would be kept out of the desk."))
    transaction = Transaction()
    flag = TenantItem.needs_second_factor
    transaction.update(stored, [flag.set(True) if demanded else flag.remove()], condition=TenantItem.tenant_id.exists())
    member_changes.require_role(transaction, tenant)
    told = [{"second factor": _WORDS[one]} for one in (before, demanded)]
    entry = AuditEntry.of_tenant(stored, AuditAction.TENANT_SIGN_IN_CHANGED, by, *told)
    refused = Conflict(gettext("Your role in this desk has changed. Nothing was saved."))
    recording.commit(transaction, [entry], refused=refused)
    return True


def _has_factor(by: Actor) -> bool:
    user = accounts.find_by_id(by.id)
    return user is not None and bool(user.second_factors)


COPIES: Final = 50  # members whose copy changes in one transaction
_SLUG: Final = "slug"
_ROUNDS: Final = 5  # of copying, while others go on renaming


def rename(tenant: TenantContext, *, name: str, slug: str, by: Actor) -> None:
    """Give the tenant another name, slug or both.

    Raises Invalid, and Conflict if the slug is taken, the tenant is closed or somebody else was faster; `field` names
    the field at fault.
    """
    name, slug = tenant_lifecycle.valid_name(name), tenant_directory.valid_slug(slug)
    stored = tenant_directory.get(tenant.tenant_id)
    if (name, slug) != (stored.name, stored.slug):
        _rename(tenant, stored, name, slug, by)
    for _round in range(_ROUNDS):
        _copy(tenant, name, slug)
        stored = tenant_directory.get(tenant.tenant_id)
        if (name, slug) == (stored.name, stored.slug):
            return
        # Somebody renamed it again meanwhile, and these copies may have replaced theirs.
        name, slug = stored.name, stored.slug


def _rename(tenant: TenantContext, stored: TenantItem, name: str, slug: str, by: Actor) -> None:
    tenant_directory.refuse_closed(stored)
    transaction = Transaction()
    unchanged = (TenantItem.name == stored.name) & (TenantItem.slug == stored.slug)
    unchanged &= TenantItem.status == stored.status  # the directory holds a copy of it
    renamed: list[UpdateAction] = [TenantItem.name.set(name), TenantItem.slug.set(slug)]
    if slug != stored.slug:
        renamed.append(TenantItem.former_slug.set(stored.slug))
    transaction.update(stored, renamed, condition=unchanged)
    if slug != stored.slug:
        own = UniqueItem.owner == tenant.tenant_id
        named = UniqueItem(slug_key(slug), owner=tenant.tenant_id)
        transaction.put(named, name=_SLUG, condition=UniqueItem.pk.does_not_exist() | own)
        # The name before stays this desk's: mail to it goes on, and to no other desk. The one before that is free.
        former = stored.former_slug or ""
        if former not in ("", slug) and tenant_directory.id_of(former) == tenant.tenant_id:
            transaction.delete(UniqueItem(slug_key(former)), condition=own)
        transaction.delete(DirectoryItem(tenant_directory.TENANTS, stored.slug))
    before, after = {"name": stored.name, "slug": stored.slug}, {"name": name, "slug": slug}
    stored.name, stored.slug = name, slug
    tenant_directory.list_as(transaction, stored, stored.status)
    member_changes.require_role(transaction, tenant)
    changed = [field for field in after if after[field] != before[field]]
    told = [{field: some[field] for field in changed} for some in (before, after)]
    try:
        recording.commit(transaction, [AuditEntry.of_tenant(stored, AuditAction.TENANT_RENAMED, by, *told)])
    except TransactionRefused as error:
        if "slug" in changed and error.reason(_SLUG):
            raise Conflict(
                gettext("Another desk is using the short name %(slug)s.") % {"slug": slug}, field="slug"
            ) from error
        raise Conflict(gettext(_CHANGED)) from error


def _copy(tenant: TenantContext, name: str, slug: str) -> None:
    """Copy name and slug into the memberships of all members and auditors, except of those who are removed at this
    moment."""
    people = [m.id for m in members.members_of(tenant.repository, consistent=True)]
    people += [one.user_id for one in auditors.listed(tenant.repository) if one.user_id not in people]
    for some in chunked(people, COPIES):
        try:
            _copy_to(tenant, some, name, slug)
        except TransactionRefused:
            for person in some:
                with suppress(TransactionRefused):  # no longer a member
                    _copy_to(tenant, [person], name, slug)


def _copy_to(tenant: TenantContext, people: Sequence[str], name: str, slug: str) -> None:
    transaction = Transaction()
    for person in people:
        transaction.update(
            MembershipItem(person, tenant.tenant_id),
            [MembershipItem.tenant_name.set(name), MembershipItem.tenant_slug.set(slug)],
            condition=MembershipItem.tenant_id.exists(),
        )
    PLATFORM.transact(transaction)
