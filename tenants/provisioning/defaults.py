"""What a desk presets: values that its owner sets and that its forms begin with.

The apps above declare what can be preset (`declare`, in their AppConfig.ready); here it is stored, in the tenant's own
item, which each request has read anyway, so that a default costs no read. Each change is a row of the audit trail.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from portal.dynamo.repository import Transaction
from portal.errors import Conflict, Invalid, TransactionRefused
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import changes
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.items import TenantItem


@dataclass(frozen=True)
class Default:
    """One value that can be preset. `choices` are (value, label); `initial` counts until an owner chooses."""

    name: str
    label: str
    choices: tuple[tuple[str, str], ...]
    initial: str


_declared: Final[dict[str, Default]] = {}


def declare(default: Default) -> None:
    _declared[default.name] = default


def declared() -> tuple[Default, ...]:
    return tuple(_declared.values())


def value(tenant: TenantContext, name: str) -> str:
    """What the desk presets. A stored value that is no choice any more counts as none."""
    default = _declared[name]
    stored = _read(tenant.defaults).get(name, "")
    return stored if stored in dict(default.choices) else default.initial


def change(tenant: TenantContext, *, values: Mapping[str, str], by: Actor) -> bool:
    """Preset these, and say whether that changed anything.

    Raises Invalid for what cannot be chosen, Conflict where somebody else was first or the actor's role has changed.
    """
    for name, chosen in values.items():
        if name not in _declared or chosen not in dict(_declared[name].choices):
            raise Invalid("That cannot be chosen.", field=name)
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
    changes.require_role(transaction, tenant)
    entry = AuditEntry(
        tenant.tenant_id,
        AuditAction.TENANT_DEFAULTS_CHANGED,
        by,
        "tenant",
        tenant.tenant_id,
        stored.name,
        before={name: before[name] for name in changed},
        after={name: values[name] for name in changed},
    )
    try:
        recording.commit(transaction, [entry])
    except TransactionRefused as error:
        raise Conflict("Somebody else has just changed this desk. Look at it again.") from error
    return True


def _read(text: str | None) -> dict[str, str]:
    return json.loads(text) if text else {}
