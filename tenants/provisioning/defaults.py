"""Store the defaults of a desk: values that its owners choose and that its forms begin with.

The apps above declare what has a default (`declare`, in their AppConfig.ready). The chosen values are in the tenant's
own item, which every request reads anyway, so that a default costs no read.
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
from tenants.membership import member_changes
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.stored import TenantItem


@dataclass(frozen=True)
class Default:
    """A value that has a default. `choices` are (value, label); `initial` applies until an owner chooses another."""

    name: str
    label: str
    choices: tuple[tuple[str, str], ...]
    initial: str


_declared: Final[dict[str, Default]] = {}


def declare(default: Default) -> None:
    """Let owners choose a default for one more value."""
    _declared[default.name] = default


def declared() -> tuple[Default, ...]:
    """Return the values that have a default."""
    return tuple(_declared.values())


def value(tenant: TenantContext, name: str) -> str:
    """Return the default of one value. A stored value that is no longer a choice is ignored."""
    default = _declared[name]
    stored = _read(tenant.defaults).get(name, "")
    return stored if stored in dict(default.choices) else default.initial


def change(tenant: TenantContext, *, values: Mapping[str, str], by: Actor) -> bool:
    """Store these defaults, and tell whether that changed anything.

    Raises Invalid for a value that is no choice, and Conflict if somebody else was faster or the actor's role changed.
    """
    for name, chosen in values.items():
        if name not in _declared or chosen not in dict(_declared[name].choices):
            raise Invalid("Choose a value from the list.", field=name)
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
        raise Conflict("Somebody else has just changed these settings. Please check and try again.") from error
    return True


def _read(text: str | None) -> dict[str, str]:
    return json.loads(text) if text else {}
