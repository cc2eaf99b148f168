"""Find a person in the rows of groups, and take them out where they are erased. A member's own row goes with the
membership."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from django.utils.translation import gettext_noop

from portal.dynamo.store import Action, Transaction
from portal.schema import keys
from tenants.audit_trail import recording
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalData, PersonalPlace
from tickets.groups.stored import ROWS, AgentItem, TurnsItem

_Row = AgentItem | TurnsItem


def _items(tenant: TenantContext, person: DeskPerson) -> Iterator[_Row]:
    return tenant.repository.query_all(ROWS, keys.tenant, consistent=True)


def _places(person: DeskPerson, names: Collection[str], item: _Row) -> Iterator[PersonalPlace]:
    if isinstance(item, TurnsItem):
        if any(one in item.last + item.given for one in person.accounts):
            yield PersonalPlace(gettext_noop("latest turns of a group"))
        return
    if item.agent in person.accounts:
        yield PersonalPlace(
            gettext_noop("the member's own groups"), excerpt=", ".join(sorted(item.groups or ())), stays=True
        )
    if person.is_who(item.stand_in or ""):
        yield PersonalPlace(gettext_noop("stand-in of a member who is away"))


def _replace(tenant: TenantContext, new: NewName, item: _Row) -> None:
    """Take a person out of a row. Raises TransactionRefused where somebody changes it."""
    is_who, actions = new.person.is_who, list[Action]()
    transaction = Transaction()
    if isinstance(item, TurnsItem):
        last = {group: agent for group, agent in json.loads(item.last).items() if not is_who(agent)}
        given = [one for one in json.loads(item.given) if not is_who(one[1])]
        actions = [TurnsItem.last.set(json.dumps(last)), TurnsItem.given.set(json.dumps(given))]
        actions.append(TurnsItem.version.set(int(item.version) + 1))
        transaction.update(item, actions, condition=TurnsItem.version == int(item.version))
    elif is_who(item.stand_in or ""):
        actions = [AgentItem.stand_in.remove(), AgentItem.version.set(int(item.version) + 1)]
        transaction.update(item, actions, condition=AgentItem.version == int(item.version))
    else:
        return
    recording.commit(transaction, [])


PEOPLE = PersonalData(_items, _places, _replace)
