"""Change what a desk has defined: add and change fields and kinds, put them in order, choose the default kind.

Each change holds for the version of the desk's setup that its author saw, and has its row in the audit trail. Nothing
is deleted: a field or a kind is archived and can be used again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from portal import plain_text
from portal.errors import Conflict, Invalid, NotFound
from portal.web import locales
from tenants.audit_trail import browsing
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tickets.custom_fields import definitions
from tickets.custom_fields.definitions import (
    CHOICES_LIMIT,
    COLUMNS_LIMIT,
    FIELDS_LIMIT,
    HELP_LIMIT,
    HIDDEN,
    KINDS_LIMIT,
    NAME_LIMIT,
    NO_KIND,
    PART,
    REQUIRED,
    SHOWN,
    TEMPLATE_LIMIT,
    CustomField,
    Definitions,
    TicketKind,
    operator_word,
)
from tickets.desk_setup import setup
from tickets.desk_setup.setup import CHANGED, DeskSetup
from tickets.ticket.custom_values import MOST_IDS, TEXT_LIMIT, FieldType
from tickets.ticket.fields import FIELDS, KIND

# Words that the search and lists have in other meanings.
_TAKEN: Final = {*(operator_word(one.named) for one in FIELDS), "requester", "from", "tag", "before", "after", "number"}
USES: Final = (
    (HIDDEN, gettext_lazy("Not asked")),
    (SHOWN, gettext_lazy("Asked")),
    (REQUIRED, gettext_lazy("Required")),
)
# In the audit trail.
_USES: Final = {HIDDEN: gettext_noop("not asked"), SHOWN: gettext_noop("asked"), REQUIRED: gettext_noop("required")}
_COLUMN, _ARCHIVED, _NO_KIND = gettext_noop("column"), gettext_noop("archived"), gettext_noop("no kind")
_TEMPLATE: Final = gettext_noop("template of %(count)s characters")
_facts_said = browsing.codes({one: one for one in (_COLUMN, _ARCHIVED)}, behind=" · ")
_template_said = browsing.counted(_TEMPLATE)
browsing.declare_values(_facts_said, "field ")
browsing.declare_values(lambda value: _facts_said(_template_said(value)), "kind ")
_uses_said, _kinds_said = (
    browsing.codes({one: one for one in _USES.values()}, behind=": "),
    browsing.codes({_NO_KIND: _NO_KIND}),
)
browsing.declare_values(_uses_said, "form of ", "form without a kind")
browsing.declare_values(lambda value: _kinds_said(_uses_said(value)), "forms of ")

_T = TypeVar("_T", CustomField, TicketKind)


@dataclass(frozen=True)
class FieldWishes:
    """A field as an admin wants it. `forms` are those of `CustomField`."""

    name: str
    help: str = ""
    choices: Sequence[str] = ()
    forms: Mapping[str, int] | None = None
    is_column: bool = False
    is_archived: bool = False


@dataclass(frozen=True)
class KindWishes:
    """A kind as an admin wants it. `fields` says for fields, by id, whether its form asks them."""

    name: str
    template: str = ""
    fields: Mapping[str, int] | None = None
    is_default: bool = False
    is_archived: bool = False


def read(tenant: TenantContext) -> tuple[Definitions, DeskSetup]:
    """Return what is defined now, with the setup that it was read in: one consistent GetItem."""
    seen = setup.read(tenant)
    return definitions.of_setup(tenant.tenant_id, seen), seen


def add_field(tenant: TenantContext, kind: FieldType, wishes: FieldWishes, *, version: int, by: Actor) -> str:
    """Define a field, and return its id. Raises Invalid and Conflict."""
    now, seen = _current(tenant, version)
    number = 1 + max((int(one.id.rpartition("_")[2]) for one in now.fields), default=0)
    if number > MOST_IDS:
        raise Invalid(_("A desk can define %(most)s fields in all, archived ones included.") % {"most": MOST_IDS})
    made = _checked_field(now, CustomField(f"{kind.value}_{number}", ""), wishes)
    _store(tenant, seen, now, replace(now, fields=(*now.fields, made)), by)
    return made.id


def change_field(tenant: TenantContext, field_id: str, wishes: FieldWishes, *, version: int, by: Actor) -> None:
    """Change a field; what tickets have in it stays. Raises NotFound, Invalid, Conflict."""
    now, seen = _current(tenant, version)
    if (stored := now.by_id.get(field_id)) is None:
        raise NotFound(_("There is no such field."))
    _store(tenant, seen, now, replace(now, fields=_put(now.fields, _checked_field(now, stored, wishes))), by)


def add_kind(tenant: TenantContext, wishes: KindWishes, *, version: int, by: Actor) -> str:
    """Define a kind of tickets, and return its id. Raises Invalid and Conflict."""
    now, seen = _current(tenant, version)
    number = 1 + max((int(one.id.rpartition("_")[2]) for one in now.kinds), default=0)
    if number > MOST_IDS:
        raise Invalid(_("A desk can define %(most)s kinds in all, archived ones included.") % {"most": MOST_IDS})
    made = _checked_kind(now, TicketKind(f"kind_{number}", ""), wishes)
    _store(tenant, seen, now, _with_kind(replace(now, kinds=(*now.kinds, made)), made, wishes), by)
    return made.id


def change_kind(tenant: TenantContext, kind_id: str, wishes: KindWishes, *, version: int, by: Actor) -> None:
    """Change a kind; tickets that have it keep it. Raises NotFound, Invalid, Conflict."""
    now, seen = _current(tenant, version)
    if (stored := now.kinds_by_id.get(kind_id)) is None:
        raise NotFound(_("There is no such kind."))
    made = _checked_kind(now, stored, wishes)
    _store(tenant, seen, now, _with_kind(replace(now, kinds=_put(now.kinds, made)), made, wishes), by)


def move(tenant: TenantContext, defined_id: str, *, by_places: int, version: int, by: Actor) -> None:
    """Move a field or a kind among those that are in use, up for a negative number. Raises NotFound and Conflict."""
    now, seen = _current(tenant, version)
    if defined_id in now.by_id:
        after = replace(now, fields=_moved(now.fields, defined_id, by_places))
    elif defined_id in now.kinds_by_id:
        after = replace(now, kinds=_moved(now.kinds, defined_id, by_places))
    else:
        raise NotFound(_("There is no such field."))
    _store(tenant, seen, now, after, by)


def _current(tenant: TenantContext, version: int) -> tuple[Definitions, DeskSetup]:
    now, seen = read(tenant)
    if seen.version != version:
        raise Conflict(_(CHANGED))
    return now, seen


def _put(among: tuple[_T, ...], one: _T) -> tuple[_T, ...]:
    return tuple(one if other.id == one.id else other for other in among)


def _moved(among: tuple[_T, ...], defined_id: str, by_places: int) -> tuple[_T, ...]:
    order: list[_T] = [one for one in among if not one.is_archived]
    archived: list[_T] = [one for one in among if one.is_archived]
    place = next((n for n, one in enumerate(order) if one.id == defined_id), None)
    if place is not None:
        order.insert(max(0, place + by_places), order.pop(place))
    return tuple(order + archived)


# --- what may be defined ---


def _checked_field(now: Definitions, stored: CustomField, wishes: FieldWishes) -> CustomField:
    others = [one for one in now.fields if one.id != stored.id]
    name = _name(wishes.name, [one.name for one in others], _FIELD)
    if operator_word(name) in _TAKEN:
        raise Invalid(
            _("“%(name)s” is a field that every ticket has. Choose another name.") % {"name": name}, field="name"
        )
    about = locales.within(plain_text.line(wishes.help), HELP_LIMIT, "help")
    choices = _choices(wishes.choices) if stored.type is FieldType.CHOICE else ()
    in_use = [one for one in others if not one.is_archived]
    if not wishes.is_archived and len(in_use) >= FIELDS_LIMIT:
        raise Invalid(_("A desk uses at most %(limit)s fields at a time. Archive one first.") % {"limit": FIELDS_LIMIT})
    if wishes.is_column and not wishes.is_archived and sum(one.is_column for one in in_use) >= COLUMNS_LIMIT:
        raise Invalid(
            _("Lists have room for %(limit)s columns of this kind.") % {"limit": COLUMNS_LIMIT}, field="is_column"
        )
    forms = stored.forms if wishes.forms is None else {one: use for one, use in wishes.forms.items() if use}
    # Of a kind that is archived, and so in no form of definitions, the use stays.
    known = {one.id for one in now.kinds_in_use} | {NO_KIND}
    kept = {one: use for one, use in stored.forms.items() if one not in known}
    return replace(
        stored,
        name=name,
        help=about,
        choices=choices,
        forms={**kept, **forms},
        is_column=wishes.is_column,
        is_archived=wishes.is_archived,
    )


def _choices(typed: Sequence[str]) -> tuple[str, ...]:
    choices = tuple(dict.fromkeys(filter(None, map(plain_text.line, typed))))
    if not choices:
        raise Invalid(_("Enter at least one choice, each in a line of its own."), field="choices")
    if len(choices) > CHOICES_LIMIT:
        raise Invalid(
            _("A field offers at most %(limit)s choices; these are %(count)s.")
            % {"limit": CHOICES_LIMIT, "count": len(choices)},
            field="choices",
        )
    if long := next((one for one in choices if len(one) > TEXT_LIMIT), None):
        raise Invalid(
            _("“%(long)s…” is longer than %(limit)s characters.") % {"long": long[:20], "limit": TEXT_LIMIT},
            field="choices",
        )
    return choices


def _checked_kind(now: Definitions, stored: TicketKind, wishes: KindWishes) -> TicketKind:
    others = [one for one in now.kinds if one.id != stored.id]
    name = _name(wishes.name, [one.name for one in others], _KIND)
    template = locales.within(plain_text.block(wishes.template), TEMPLATE_LIMIT, "template")
    if not wishes.is_archived and sum(not one.is_archived for one in others) >= KINDS_LIMIT:
        raise Invalid(_("A desk uses at most %(limit)s kinds at a time. Archive one first.") % {"limit": KINDS_LIMIT})
    return replace(stored, name=name, template=template, is_archived=wishes.is_archived)


_FIELD: Final = (
    gettext_noop("A field needs a name with letters or digits."),
    gettext_noop("Another field has this name."),
)
_KIND: Final = (
    gettext_noop("A kind needs a name with letters or digits."),
    gettext_noop("Another kind has this name."),
)


def _name(typed: str, others: Sequence[str], problems: tuple[str, str]) -> str:
    name = plain_text.line(typed)
    if not plain_text.has_visible_text(name) or not operator_word(name):
        raise Invalid(_(problems[0]), field="name")
    locales.within(name, NAME_LIMIT, "name")
    if operator_word(name) in map(operator_word, others):
        raise Invalid(_(problems[1]), field="name")
    return name


def _with_kind(now: Definitions, kind: TicketKind, wishes: KindWishes) -> Definitions:
    """Return the definitions with the form of a kind, and with it as the default one where that is wished."""
    is_default = wishes.is_default and not kind.is_archived
    was_default = now.default_kind == kind.id
    default = kind.id if is_default else NO_KIND if was_default else now.default_kind
    uses = wishes.fields or {}
    fields = tuple(
        replace(one, forms={**one.forms, kind.id: uses[one.id]}) if one.id in uses else one for one in now.fields
    )
    return replace(now, fields=fields, default_kind=default)


# --- storing ---


def _store(tenant: TenantContext, seen: DeskSetup, before: Definitions, after: Definitions, by: Actor) -> None:
    if after.text == before.text:
        return
    told = _told(before), _told(after)
    changed = sorted(name for name in told[0].keys() | told[1].keys() if told[0].get(name) != told[1].get(name))
    rows = [{name: one.get(name, "") for name in changed} for one in told]
    for row, forms in zip(rows, _told_of_forms(before, after), strict=True):
        row |= forms
    setup.change(tenant, PART, after.text, seen=seen, by=by, told=(rows[0], rows[1]))


def _told(defined: Definitions) -> dict[str, str]:
    told = {
        "order of fields": ", ".join(one.name for one in defined.in_use),
        "order of kinds": ", ".join(one.name for one in defined.kinds_in_use),
        "default kind": defined.name(KIND, defined.default_kind),
    }
    for one in defined.fields:
        facts = [one.name, one.help, ", ".join(one.choices)]
        facts += [_COLUMN] * one.is_column + [_ARCHIVED] * one.is_archived
        told[f"field {one.id}"] = " · ".join(filter(None, facts))
    for kind in defined.kinds:
        template = _TEMPLATE % {"count": f"{len(kind.template):,}"} if kind.template else ""
        told[f"{KIND.name} {kind.id}"] = " · ".join(filter(None, [kind.name, template, _ARCHIVED * kind.is_archived]))
    return told


def _told_of_forms(before: Definitions, after: Definitions) -> tuple[dict[str, str], dict[str, str]]:
    """Return what forms asked and ask, where that changes: of one kind by its fields, else of each field by kinds.

    All of a field or kind would make the row grow with the setup: a kind has a form with each field.
    """
    was = {one.id: one.forms for one in before.fields}
    changes = [
        (kind, one, was.get(one.id, {}).get(kind, HIDDEN), one.forms.get(kind, HIDDEN))
        for one in after.fields
        for kind in (NO_KIND, *after.kinds_by_id)
        if was.get(one.id, {}).get(kind, HIDDEN) != one.forms.get(kind, HIDDEN)
    ]
    is_of_kind = len({kind for kind, *_ in changes}) == 1
    uses: list[dict[str, list[str]]] = [{}, {}]
    for kind, one, *used in changes:
        form = after.name(KIND, kind)
        of_kind = f"form of {form}" if kind else "form without a kind"
        name, part = (of_kind, one.name) if is_of_kind else (f"forms of {one.name}", form or _NO_KIND)
        for row, use in zip(uses, used, strict=True):
            row.setdefault(name, []).append(f"{part}: {_USES[use]}")
    told = [{name: "; ".join(parts) for name, parts in row.items()} for row in uses]
    return told[0], told[1]
