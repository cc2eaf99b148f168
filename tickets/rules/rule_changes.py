"""Read rules, and create, change, switch and delete them. Admins and owners do this, and each change is audited.

For which events the rules that are on are is also stored in the desk's own item, which every request has read already:
so a change of a ticket knows without a read whether a rule may be for it, and a desk without rules pays nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from delivery.webhooks import endpoints
from portal import clock, plain_text
from portal.dynamo.client import fan_out
from portal.dynamo.store import Transaction
from portal.dynamo.transaction import Companion, with_companion
from portal.errors import Forbidden, Invalid, NotFound, Overtaken, TransactionRefused
from portal.web import locales
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry, ReadChange
from tenants.membership import member_changes, members
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.stored import TenantItem
from tickets.custom_fields import definitions
from tickets.desk import changing
from tickets.ready_answers import answer_reading, filling
from tickets.ready_answers import stored as answer_ids
from tickets.rules import definition, stored
from tickets.rules.definition import ASSIGNEE_WORD, TYPES, On, Only, Rule, Then, When
from tickets.rules.stored import CURRENT, MOST, RuleItem, RuleVersionItem
from tickets.ticket.fields import ASSIGNEE, CUSTOM, DEFINED

NAME_LIMIT: Final = 100  # characters
MAIL_LIMIT: Final = 2_000
DEFINITION_LIMIT: Final = 8_000  # bytes
CHANGED: Final = gettext_noop("Somebody else has just changed the rules of this desk. Please check and try again.")
_GONE: Final = gettext_noop("There is no such rule.")
_RULE, _EVENTS = "rule", "rule events"  # names of members of a transaction
_EMPTY: Final = Rule("", 0, "", False, When(On.CREATED), Only(), Then())


# --- reading ---


def listed(tenant: TenantContext, *, consistent: bool = False) -> list[RuleItem]:
    """Return all rules in the order in which they run, the oldest first: one Query."""
    found = tenant.repository.query_all(RuleItem, stored.rules, begins_with=CURRENT, consistent=consistent)
    return sorted(found, key=lambda item: item.rule_id)


def active(tenant: TenantContext) -> list[Rule]:
    """Return the rules that are on, in the order in which they run: one Query."""
    return [of_item(item) for item in listed(tenant) if item.is_on]


def find(tenant: TenantContext, rule_id: str) -> RuleItem:
    """Return a rule: one consistent GetItem. Raises NotFound."""
    found = None
    if stored.is_id(rule_id):
        found = tenant.repository.get(RuleItem, stored.rules, sort=stored.rule(rule_id), consistent=True)
    if found is None:
        raise NotFound(_(_GONE))
    return found


def find_version(tenant: TenantContext, rule_id: str, version: int) -> RuleVersionItem:
    """Return a version of a rule, also of one that was deleted: one GetItem. Raises NotFound."""
    found = None
    if stored.is_id(rule_id) and version > 0:
        found = tenant.repository.get(RuleVersionItem, stored.rules, sort=stored.version(rule_id, version))
    if found is None:
        raise NotFound(_("There is no such version of a rule."))
    return found


def versions(tenant: TenantContext, rule_id: str, *, limit: int = 50) -> list[RuleVersionItem]:
    """Return the latest versions of a rule, the newest first: one Query. Raises NotFound."""
    if not stored.is_id(rule_id):
        raise NotFound(_(_GONE))
    beginning = stored.versions(rule_id)
    return tenant.repository.query(
        RuleVersionItem, stored.rules, begins_with=beginning, descending=True, limit=limit
    ).items


def of_item(item: RuleItem | RuleVersionItem) -> Rule:
    """Return the rule that an item holds; a version is not on."""
    is_on = isinstance(item, RuleItem) and item.is_on
    return definition.loaded(
        item.definition, rule_id=item.rule_id, version=int(item.version), name=item.name, is_on=is_on
    )


# --- changes ---


_Plan = Callable[[list[RuleItem]], tuple[RuleItem | None, RuleItem | None]]  # the rule before and after


def create(
    tenant: TenantContext,
    name: str,
    given: Mapping[str, Any],
    *,
    by: Actor,
    is_on: bool = False,
    companion: Companion[RuleItem] | None = None,
) -> RuleItem:
    """Add a rule, of when, if and then as `definition.shown` has them. Raises Invalid with the field, and Forbidden."""
    rule = _checked(tenant, replace(definition.read(given, _EMPTY), id=stored.new_id(), version=1, name=name))
    now = clock.stamp()
    item = _item(tenant, rule, is_on=is_on, revision=1, created_at=now, changed_at=now)

    def plan(rules: list[RuleItem]) -> tuple[RuleItem | None, RuleItem | None]:
        if len(rules) >= MOST:
            raise Invalid(
                _("A desk can have up to %(most)s rules. Delete one that nobody needs any more.") % {"most": MOST}
            )
        return None, item

    _commit(tenant, plan, by, companion)
    return item


def change(
    tenant: TenantContext,
    rule_id: str,
    given: Mapping[str, Any],
    *,
    name: str | None = None,
    is_on: bool | None = None,
    revision: int | None = None,
    by: Actor,
) -> RuleItem:
    """Change what is given of a rule: its name, when, if, then, and whether it is on. Each change but the last makes a
    version. `revision` is the one that the author saw, None for whatever it is.

    Raises NotFound, Invalid with the field, Forbidden, and Overtaken where somebody else has saved meanwhile.
    """
    seen = find(tenant, rule_id)
    before = of_item(seen)
    wished = _checked(
        tenant, replace(definition.read(given, before), name=before.name if name is None else name), only_new=before
    )
    made: list[RuleItem] = []

    def plan(rules: list[RuleItem]) -> tuple[RuleItem | None, RuleItem | None]:
        old = next((item for item in rules if item.rule_id == rule_id), None)
        if old is None:
            raise NotFound(_(_GONE))
        if int(old.revision) != int(seen.revision) or revision not in (None, int(old.revision)):
            raise Overtaken(_(CHANGED))
        is_same = (wished.name, definition.dumped(wished)) == (old.name, old.definition)
        on = old.is_on if is_on is None else is_on
        if is_same and on == old.is_on:
            made[:] = [old]
            return None, None
        rule = replace(wished, version=int(old.version) + (not is_same))
        made[:] = [
            _item(
                tenant,
                rule,
                is_on=on,
                revision=int(old.revision) + 1,
                created_at=old.created_at,
                changed_at=clock.stamp(),
            ).with_unknown_of(old)
        ]
        return old, made[0]

    _commit(tenant, plan, by)
    return made[0]


def delete(tenant: TenantContext, rule_id: str, *, by: Actor) -> None:
    """Delete a rule. Its runs stay, and so do its versions, to which histories lead. Raises NotFound, Forbidden."""

    def plan(rules: list[RuleItem]) -> tuple[RuleItem | None, RuleItem | None]:
        old = next((item for item in rules if item.rule_id == rule_id), None)
        if old is None:
            raise NotFound(_(_GONE))
        return old, None

    _commit(tenant, plan, by)


def _item(tenant: TenantContext, rule: Rule, **values: Any) -> RuleItem:
    pk = tenant.repository.key(stored.rules)
    values |= {"name": rule.name, "version": rule.version, "definition": definition.dumped(rule)}
    return RuleItem(pk, stored.rule(rule.id), rule_id=rule.id, **values)


def _commit(tenant: TenantContext, plan: _Plan, by: Actor, companion: Companion[RuleItem] | None = None) -> None:
    """Write what becomes of one rule, with its new version, the events of all rules, and the row of the audit trail."""
    if not tenant.is_admin and tenant.standing is None:
        raise Forbidden(_("Admins and owners change the rules of a desk."))
    waiting = [companion]  # for the first attempt, beside whose reads it does its part

    def build() -> ReadChange | None:
        reads: list[Callable[[], Any]] = [
            partial(listed, tenant, consistent=True),
            partial(tenant_directory.get, tenant.tenant_id),
        ]
        rules, desk = with_companion(waiting.pop() if waiting else None, lambda: fan_out(reads))
        old, new = plan(rules)
        one = new or old
        if one is None:
            return None
        others = [item for item in rules if item.rule_id != one.rule_id]
        if new is not None and any(item.name.casefold() == new.name.casefold() for item in others):
            raise Invalid(_("There is a rule with this name already."), field="name")
        transaction = Transaction()
        _write(transaction, old, new)
        _listen(transaction, desk, [*others, *([new] if new else [])])
        member_changes.require_role(transaction, tenant)
        if companion is not None and new is not None:
            companion.join(transaction, new)
        return transaction, [_entry(tenant, by, one, old, new)]

    try:
        recording.commit_read(tenant.tenant_id, build, depending=(_EVENTS,))
    except TransactionRefused as refused:
        if companion is not None:
            companion.blame(refused)
        member_changes.blame_standing(tenant, refused)
        raise Overtaken(_(CHANGED)) from refused


def _write(transaction: Transaction, old: RuleItem | None, new: RuleItem | None) -> None:
    seen = RuleItem.revision == int(old.revision) if old else RuleItem.pk.does_not_exist()
    if new is None:
        if old is not None:
            transaction.delete(old, name=_RULE, condition=seen)
        return
    transaction.put(new, name=_RULE, condition=seen)
    if old is None or new.version != old.version:
        transaction.put(
            RuleVersionItem(
                new.pk,
                stored.version(new.rule_id, int(new.version)),
                rule_id=new.rule_id,
                name=new.name,
                version=new.version,
                definition=new.definition,
                made_at=new.changed_at,
            )
        )


def _listen(transaction: Transaction, desk: TenantItem, rules: Sequence[RuleItem]) -> None:
    """Let the desk's own item say for which events its rules are. Its number grows, so that of two changes at the same
    time one is made anew."""
    kinds = sorted({kind for item in rules if item.is_on for kind in TYPES[of_item(item).when.on]})
    number = int((desk.rule_events or "0").partition(":")[0]) + 1
    seen = TenantItem.rule_events
    unmoved = seen == desk.rule_events if desk.rule_events else seen.does_not_exist()
    if kinds or desk.rule_events:
        now = seen.set(f"{number}:{','.join(kinds)}")
        condition = unmoved & TenantItem.tenant_id.exists()
        transaction.update(TenantItem(desk.tenant_id), [now], condition=condition, name=_EVENTS)


def _entry(tenant: TenantContext, by: Actor, one: RuleItem, old: RuleItem | None, new: RuleItem | None) -> AuditEntry:
    action = AuditAction.RULE_CHANGED if old and new else AuditAction.RULE_CREATED if new else AuditAction.RULE_DELETED
    before, after = (_told(item) if item else {} for item in (old, new))
    if old and new:
        names = [name for name in after if before[name] != after[name]]
        before, after = ({name: of[name] for name in names} for of in (before, after))
    return AuditEntry(tenant.tenant_id, action, by, "rule", one.rule_id, one.name, before, after)


def _told(item: RuleItem) -> dict[str, str]:
    """Return the values as the audit trail has them, which outlives an erasure: of a mail the length of its text."""
    parts = definition.shown(of_item(item))
    if mail := parts["then"]["mail"]:
        mail["text"] = f"{len(mail['text']):,} characters"
    told = {name: json.dumps(part, ensure_ascii=False) for name, part in parts.items()}
    return {"name": item.name, "on": "yes" if item.is_on else "no", "version": str(int(item.version)), **told}


# --- what a rule may be ---


def _checked(tenant: TenantContext, rule: Rule, *, only_new: Rule | None = None) -> Rule:
    """Return a rule as it is stored. Raises Invalid with the field, for values of actions that are not those of
    `only_new` too where they are of no use. One round trip."""
    name = plain_text.line(rule.name)
    if not name:
        raise Invalid(_("A rule needs a name."), field="name")
    locales.within(name, NAME_LIMIT, "name")
    if rule.then.is_nothing:
        raise Invalid(_("Choose what the rule is to do."), field="then")
    text = locales.within(plain_text.block(rule.then.mail_text), MAIL_LIMIT, "mail")
    if rule.then.mail_to and not text:
        raise Invalid(_("Write what the mail says."), field="mail")
    clean = replace(rule, name=name, then=replace(rule.then, mail_text=text))
    if only_new is None or clean.then != only_new.then:
        _check_actions(tenant, clean.then)
    if len(definition.dumped(clean).encode()) > DEFINITION_LIMIT:
        raise Invalid(_("This rule is too long. Shorten the mail or use fewer values."), field="then")
    return clean


def _check_actions(tenant: TenantContext, then: Then) -> None:
    values = then.edit.values
    if both := [tag for tag in then.edit.add_tags if tag in then.edit.remove_tags]:
        raise Invalid(_("Add the tag “%(tag)s” or remove it, not both.") % {"tag": both[0]}, field="remove_tags")
    defined = CUSTOM.by_change(values.get(CUSTOM.name, {}))
    defined |= {one.name: values[one.name] for one in DEFINED if one.name in values}
    if defined:
        definitions.of(tenant).check(defined)
    if then.mail_to:
        try:
            filling.check(then.mail_text)
        except Invalid as error:
            raise Invalid(error.message, field="mail") from error
    reads: list[Callable[[], Any]] = []
    if who := values.get(ASSIGNEE.name):
        reads.append(partial(changing.resolver_name, tenant, who))
    if then.answer:
        reads.append(partial(_answer, tenant, then.answer))
    if then.webhook:
        reads.append(partial(_endpoint, tenant, then.webhook))
    if then.mail_to not in ("", ASSIGNEE_WORD):
        reads.append(partial(_recipient, tenant, then.mail_to))
    if reads:
        fan_out(reads)


def _answer(tenant: TenantContext, answer_id: str) -> None:
    try:
        is_shared = answer_ids.is_shared(answer_id)
    except ValueError:
        is_shared = False
    if not is_shared or not answer_reading.known(tenant, [answer_id]):
        raise Invalid(_("Choose a ready answer that is shared."), field="answer")


def _endpoint(tenant: TenantContext, endpoint_id: str) -> None:
    try:
        endpoints.find(tenant.repository, endpoint_id)
    except NotFound as error:
        raise Invalid(_("There is no such endpoint."), field="webhook") from error


def _recipient(tenant: TenantContext, user_id: str) -> None:
    if members.member(tenant.repository, user_id) is None:
        raise Invalid(_("Choose a member of this desk."), field="mail")
