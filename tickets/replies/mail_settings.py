"""Read and change how a desk sends mail: its name there, signature, quoted history, acknowledgement, own addresses."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import plain_text
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid
from portal.schema import keys
from portal.web import locales
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes, members
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, PersonalData, PersonalPlace
from tickets.replies.stored import HISTORY_CHOICES, LINK_DAYS_CHOICES, SETTINGS, MailSettingsItem
from tickets.requesters import requester_addresses

NAME_LIMIT: Final = 80  # characters of the name in From
TEXT_LIMIT: Final = 2000  # characters of the signature and of the acknowledgement
LIST_LIMIT: Final = 100  # addresses
ACKNOWLEDGEMENT: Final = gettext_noop("We have received your message and will answer as soon as we can.")
_CHOICES: Final = {"history": HISTORY_CHOICES, "link_days": LINK_DAYS_CHOICES}
_CHANGED: Final = gettext_noop("Somebody else has just changed these settings. Please check and try again.")


@dataclass(frozen=True)
class MailSettings:
    """Settings of how a desk sends mail; the defaults are those of a desk that has changed nothing.

    `domain_sender` is the desk's own sending address, used while `domain_proved_at` is set: since then its DNS names
    the desk. `findings` says what the last check of the domain found, by what was checked. For the links of requesters
    see ticket_links.py.
    """

    sender_name: str = ""
    signature: str = ""
    history: int = 5
    acknowledges: bool = True
    acknowledgement: str = ""
    addresses: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    domain: str = ""
    domain_sender: str = ""
    domain_proved_at: str = ""
    domain_checked_at: str = ""
    findings: Mapping[str, str] = field(default_factory=dict, hash=False)
    link_days: int = 90
    link_generation: int = 0
    version: int = 0

    @classmethod
    def of(cls, item: MailSettingsItem | None) -> MailSettings:
        """Return what is stored, or the defaults where nothing is."""
        if item is None:
            return cls()
        return cls(
            sender_name=item.sender_name,
            signature=item.signature,
            history=int(item.history),
            acknowledges=bool(item.acknowledges),
            acknowledgement=item.acknowledgement,
            addresses=tuple(item.addresses),
            blocked=tuple(item.blocked),
            domain=item.domain,
            domain_sender=item.domain_sender,
            domain_proved_at=item.domain_proved_at or "",
            domain_checked_at=item.domain_checked_at or "",
            findings=json.loads(item.domain_findings) if item.domain_findings else {},
            link_days=int(item.link_days),
            link_generation=int(item.link_generation),
            version=int(item.version),
        )

    def is_blocked(self, address: str) -> bool:
        """Tell whether the desk takes no letters from an address: it is in the list itself, or by its domain."""
        folded = _folded(address)
        host = folded.rpartition("@")[2]
        parents = [host.split(".", n)[n] for n in range(host.count(".") + 1)]
        return folded in self.blocked or any(f"@{parent}" in self.blocked for parent in parents)

    def is_own(self, slug: str, address: str) -> bool:
        """Tell whether an address is one of the desk's, so that mail to it comes back to the desk."""
        folded = _folded(address)
        local, _, host = folded.rpartition("@")
        domain: str = settings.MAIL_DOMAIN
        if domain and host == domain and local.partition("+")[0] in (slug, "reply", "bounce"):
            return True
        return folded in (*self.addresses, self.domain_sender)


def _folded(address: str) -> str:
    """Return an address as the settings hold it, as far as it is one: its domain as in the name system."""
    try:
        return requester_addresses.normal(address)
    except Invalid:
        return address.strip().lower()


def own_address(slug: str) -> str:
    """Return the mail address that every desk has, "" where this installation receives no mail."""
    return f"{slug}@{settings.MAIL_DOMAIN}" if settings.MAIL_DOMAIN else ""


def read(tenant: TenantContext) -> MailSettings:
    """Return how the desk sends mail: one consistent GetItem."""
    item = tenant.repository.get(MailSettingsItem, keys.tenant, sort=SETTINGS, consistent=True)
    return MailSettings.of(item)


def change(tenant: TenantContext, *, values: Mapping[str, Any], version: int, by: Actor) -> bool:
    """Store these values by the names of `MailSettings`, with an audit row; tell whether that changed anything.

    `version` is that of the settings which the person saw. Raises Invalid, and Conflict where they were changed since,
    or where the actor's role was.
    """
    wanted = _checked(values)
    now = read(tenant)
    before = {name: getattr(now, name) for name in wanted}
    changed = {name: value for name, value in wanted.items() if value != before[name]}
    if not changed:
        return False
    store(tenant, now, changed, version=version, by=by, before=before)
    return True


def revoke_links(tenant: TenantContext, *, version: int, by: Actor) -> None:
    """End all links of the desk's requesters to their tickets, with an audit row. Raises Conflict."""
    now = read(tenant)
    name = "link_generation"
    store(tenant, now, {name: now.link_generation + 1}, version=version, by=by, before={name: now.link_generation})


def block(tenant: TenantContext, address: str, *, by: Actor) -> bool:
    """Take no letters of an address any more, with an audit row; False where the desk takes none already.

    Raises Invalid for what is no address, for one of the desk's own or of a member, and where the list is full; and
    Conflict as `change` does.
    """
    blocked = requester_addresses.normal(address)
    now = read(tenant)
    if now.is_blocked(blocked):
        return False
    if now.is_own(tenant.slug, blocked) or members.by_address(tenant.repository, blocked):
        raise Invalid(_("This is an address of the desk or of a member. Their letters are not blocked."))
    return change(tenant, values={"blocked": [*now.blocked, blocked]}, version=now.version, by=by)


def store(
    tenant: TenantContext,
    now: MailSettings,
    changed: Mapping[str, Any],
    *,
    version: int,
    by: Actor,
    before: Mapping[str, Any],
) -> None:
    """Write changed attributes over the settings as they are `now`, where the person saw this version of them.

    Those that `before` has are told to the audit trail, also one that is no attribute. Raises Conflict.
    """
    if now.version != version:
        raise Conflict(_(_CHANGED))
    attributes: dict[str, Any] = MailSettingsItem.get_attributes()
    actions = []
    for name, value in changed.items():
        if (attribute := attributes.get(name)) is None:
            continue
        stored = list(value) if isinstance(value, tuple) else value
        actions.append(attribute.remove() if stored is None else attribute.set(stored))
    actions.append(MailSettingsItem.version.set(now.version + 1))
    is_seen = MailSettingsItem.version == now.version if now.version else MailSettingsItem.tenant_id.does_not_exist()
    transaction = Transaction()
    transaction.update(MailSettingsItem(tenant.tenant_id, SETTINGS), actions, condition=is_seen)
    member_changes.require_role(transaction, tenant)
    told = [name for name in changed if name in before]
    rows = [{name.replace("_", " "): _told(values[name]) for name in told} for values in (before, changed)]
    entry = AuditEntry.of_tenant(tenant, AuditAction.TENANT_MAIL_CHANGED, by, *rows)
    recording.commit(transaction, [entry], refused=Conflict(_(_CHANGED)))


def _told(value: Any) -> object:
    return ", ".join(value) if isinstance(value, tuple) else value


def _checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as they are stored. Raises Invalid, with the name of the value."""
    checked: dict[str, Any] = {}
    for name, value in values.items():
        if name == "sender_name":
            checked[name] = _line(value)
        elif name in ("signature", "acknowledgement"):
            unshown = _("This text has characters that no letter can show.")
            checked[name] = locales.typed_lines(value, limit=TEXT_LIMIT, field=name, unshown=unshown)
        elif name in _CHOICES:
            if value not in _CHOICES[name]:
                raise Invalid(_("Choose a value from the list."), field=name)
            checked[name] = int(value)
        elif name == "acknowledges":
            checked[name] = bool(value)
        elif name == "addresses":
            checked[name] = _listed(value, name, domains=False)
        elif name == "blocked":
            checked[name] = _listed(value, name, domains=True)
        else:
            raise ValueError(f"there is no setting {name}")
    return checked


def _line(value: str) -> str:
    shown = " ".join(plain_text.without_controls(value, limit=NAME_LIMIT + 1).split())
    if len(shown) > NAME_LIMIT:
        raise Invalid(_("Use at most %(limit)s characters.") % {"limit": NAME_LIMIT}, field="sender_name")
    if set(shown) & set('<>"@'):
        raise Invalid(
            _("Leave out <, >, @ and quotation marks: mail programs would misread them."), field="sender_name"
        )
    return shown


def _listed(lines: Iterable[str], name: str, *, domains: bool) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for line in lines:
        text = line.strip()
        if domains and text.startswith("@"):
            found[requester_addresses.normal(f"any{text}", field=name).removeprefix("any")] = None
        elif text:
            found[requester_addresses.normal(text, field=name)] = None
    if len(found) > LIST_LIMIT:
        raise Invalid(_("Enter at most %(limit)s addresses.") % {"limit": LIST_LIMIT}, field=name)
    return tuple(found)


def _places(person: DeskPerson, names: Collection[str], settings: MailSettings) -> Iterator[PersonalPlace]:
    if settings.is_blocked(person.address):
        yield PersonalPlace(gettext_noop("blocked sender of mail"), stays=True)


PEOPLE: Final = PersonalData(lambda tenant, person: [read(tenant)], _places)
