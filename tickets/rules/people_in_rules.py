"""Find a person in rules and their versions: who gets tickets or mail by them, and their address in texts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any, Final

from django.utils.translation import gettext_noop

from portal.dynamo.models import Kinds
from portal.dynamo.store import Action, Transaction
from tenants.audit_trail import recording
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalData, PersonalPlace
from tickets.rules import stored
from tickets.rules.rule_changes import NAME_LIMIT
from tickets.rules.stored import CURRENT, VERSIONS, RuleItem, RuleVersionItem
from tickets.ticket.fields import ASSIGNEE

_ITEMS: Final = Kinds[RuleItem | RuleVersionItem]({CURRENT: RuleItem, VERSIONS: RuleVersionItem})


def _rules(tenant: TenantContext, person: DeskPerson) -> Iterator[RuleItem | RuleVersionItem]:
    return tenant.repository.query_all(_ITEMS, stored.rules, consistent=True)


def _places(person: DeskPerson, names: Collection[str], item: RuleItem | RuleVersionItem) -> Iterator[PersonalPlace]:
    then, only = _parts(json.loads(item.definition))
    if person.is_who(then["set"].get(ASSIGNEE.name, "")) or person.is_who(then["mail"].get("to", "")):
        yield PersonalPlace(gettext_noop("rule that assigns tickets to them, or writes to them"), excerpt=item.name)
    if person.is_who(only.get(ASSIGNEE.name, "")):
        yield PersonalPlace(gettext_noop("rule for tickets that they have"), excerpt=item.name)
    if any(person.mail.is_in(text) for text in (item.name, then["mail"].get("text", ""), *only.values())):
        yield PersonalPlace(gettext_noop("rule, its texts"), is_text=True, excerpt=item.name)


def _parts(told: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the actions and the filters of a definition. A file that was imported may have left some out."""
    then = told.get("then") or {}
    return {**then, "set": then.get("set") or {}, "mail": then.get("mail") or {}}, told.get("if") or {}


def _replace(tenant: TenantContext, new: NewName, item: RuleItem | RuleVersionItem) -> None:
    """Take a person out of a rule, and out of its texts. An action for them is gone; a rule for the tickets that they
    had is for no others."""
    told: dict[str, Any] = json.loads(item.definition)
    (then, only), name = _parts(told), item.name
    told |= {"then": then, "if": only}
    if new.person.is_who(then["set"].get(ASSIGNEE.name, "")):
        del then["set"][ASSIGNEE.name]
    if new.person.is_who(then["mail"].get("to", "")):
        then["mail"] = {}
    if new.person.is_who(only.get(ASSIGNEE.name, "")):
        only[ASSIGNEE.name] = new.pseudonym
    if new.texts:
        name = new.person.mail.replaced(name, new.name)[:NAME_LIMIT]
        if then["mail"]:
            then["mail"]["text"] = new.person.mail.replaced(then["mail"]["text"], new.name)
        only |= {key: new.person.mail.replaced(text, new.name) for key, text in only.items()}
    kind = type(item)
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    transaction = Transaction()
    actions: list[Action] = [kind.definition.set(text), kind.name.set(name)]
    transaction.update(item, actions, condition=kind.definition == item.definition)
    recording.commit(transaction, [])


PEOPLE: Final = PersonalData(_rules, _places, _replace)
