"""Read what a desk has defined: its custom fields and its kinds of tickets, and beside them its groups.

Fields and kinds are one part of the desk's setup, as JSON, so that a page knows them without a read of its own. Nothing
is deleted: a field or a kind that is no longer wanted is archived, so that the tickets which have it remain readable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final

from django.utils.translation import gettext as _

from portal.errors import Invalid
from portal.web import locales
from tenants.tenancy.context import TenantContext
from tickets.desk_setup import setup
from tickets.desk_setup.setup import AgentGroup, DeskSetup
from tickets.ticket import custom_values
from tickets.ticket.custom_values import YES, FieldType
from tickets.ticket.due_marks import UNTIL_ANSWER
from tickets.ticket.fields import (
    BY_NAME,
    CHOICES,
    CUSTOM,
    CUSTOM_PREFIX,
    DEFINED,
    DESCRIPTION,
    KIND,
    SNOOZED,
    DefinedField,
    label_of,
)

PART: Final = "custom_fields"  # of the desk's setup
FIELDS_LIMIT: Final = 30  # fields of a desk that are in use
KINDS_LIMIT: Final = 12  # kinds of a desk that are in use
COLUMNS_LIMIT: Final = 5  # fields that lists show as columns
NAME_LIMIT: Final = 40  # characters of a field's name, and of a kind's
HELP_LIMIT: Final = 200  # characters
CHOICES_LIMIT: Final = 50  # of one field
TEMPLATE_LIMIT: Final = 2_000  # characters of a kind's template
_CHOICES: Final = {choice.name: choice for choice in CHOICES}
NO_KIND: Final = ""  # stands for tickets without a kind where fields say in which forms they are

# In a form: whether a field is asked there.
HIDDEN, SHOWN, REQUIRED = 0, 1, 2


@dataclass(frozen=True)
class CustomField:
    """A field that a desk has defined. Its id names its type, which stays.

    `forms` says for kinds, by id, and for NO_KIND whether the field is SHOWN or REQUIRED there; a kind that is missing
    does not ask it. `is_column` lets lists show it. `more` is what a newer version has stored of it, by name; it is
    written back as it is.
    """

    id: str
    name: str
    help: str = ""
    choices: tuple[str, ...] = ()
    forms: Mapping[str, int] = field(default_factory=dict, hash=False)
    is_column: bool = False
    is_archived: bool = False
    more: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def type(self) -> FieldType:
        return custom_values.type_of(self.id)

    @property
    def word(self) -> str:
        """Return the name as the search has it in front of a colon."""
        return operator_word(self.name)

    def shown(self, value: str) -> str:
        """Return a stored value as pages show it."""
        if self.type is FieldType.CHECKBOX:
            return _("Yes") if value == YES else value
        return locales.current().with_marks(value) if self.type is FieldType.NUMBER else value

    def fits(self, value: str) -> bool:
        """Tell whether a stored value is one that the field takes now."""
        return not value or not (self.is_archived or (self.type is FieldType.CHOICE and value not in self.choices))


@dataclass(frozen=True)
class TicketKind:
    """A kind of tickets. `template` is the description that its form begins with; `more` is as in CustomField."""

    id: str
    name: str
    template: str = ""
    is_archived: bool = False
    more: Mapping[str, Any] = field(default_factory=dict, hash=False)


def _known(kind: type[CustomField | TicketKind], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a stored field or kind, those that only a newer version knows as `more`."""
    names = kind.__dataclass_fields__.keys() - {"more"}
    known = {name: value for name, value in stored.items() if name in names}
    return {**known, "more": {name: value for name, value in stored.items() if name not in names}}


@dataclass(frozen=True)
class Definitions:
    """The fields and kinds of a desk, in the order that its admins chose, in one version of its setup.

    `default_kind` is the id of the kind that a new ticket has where nobody says another, "" for none. `groups` are read
    from a part of their own, and are not in `text`.
    """

    fields: tuple[CustomField, ...] = ()
    kinds: tuple[TicketKind, ...] = ()
    default_kind: str = NO_KIND
    version: int = 0
    groups: tuple[AgentGroup, ...] = ()

    @classmethod
    def parse(cls, text: str, version: int = 0, groups: str = "") -> Definitions:
        """Read what `text` wrote, "" for nothing. Raises ValueError, TypeError or KeyError for anything else."""
        told = json.loads(text) if text else {}
        fields = (
            CustomField(**_known(CustomField, {**one, "choices": tuple(one.get("choices", ()))}))
            for one in told.get("fields", ())
        )
        kinds = (TicketKind(**_known(TicketKind, one)) for one in told.get("kinds", ()))
        return cls(tuple(fields), tuple(kinds), told.get("default_kind", NO_KIND), version, setup.parsed_groups(groups))

    @property
    def text(self) -> str:
        told = asdict(self)
        del told["version"], told["groups"]
        for one in (*told["fields"], *told["kinds"]):
            more = one.pop("more")
            for name in [name for name, value in one.items() if not value]:
                del one[name]
            one |= more
        return json.dumps(told, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    @cached_property
    def by_id(self) -> dict[str, CustomField]:
        return {one.id: one for one in self.fields}

    @cached_property
    def kinds_by_id(self) -> dict[str, TicketKind]:
        return {one.id: one for one in self.kinds}

    @cached_property
    def in_use(self) -> tuple[CustomField, ...]:
        return tuple(one for one in self.fields if not one.is_archived)

    @cached_property
    def kinds_in_use(self) -> tuple[TicketKind, ...]:
        return tuple(one for one in self.kinds if not one.is_archived)

    def of_field(self, field: DefinedField) -> tuple[TicketKind, ...] | tuple[AgentGroup, ...]:
        """Return what the desk has defined for a field of tickets: its kinds, or its groups."""
        return self.kinds if field is KIND else self.groups

    def in_use_of(self, field: DefinedField) -> list[TicketKind | AgentGroup]:
        """Return those of `of_field` that are not archived."""
        return [one for one in self.of_field(field) if not one.is_archived]

    def name(self, field: DefinedField, value: str) -> str:
        """Return the name of a kind or a group, "" of none, and the id of one that this desk has not."""
        return next((one.name for one in self.of_field(field) if one.id == value), value)

    def default_of(self, field: DefinedField) -> str:
        """Return the id of the kind or the group that a new ticket has where nobody says another, "" for none."""
        if field is KIND:
            return self.default_kind
        return next((one.id for one in self.groups if one.is_default and not one.is_archived), "")

    @cached_property
    def columns(self) -> tuple[CustomField, ...]:
        return tuple(one for one in self.in_use if one.is_column)[:COLUMNS_LIMIT]

    def asked(self, kind_id: str) -> Iterator[tuple[CustomField, bool]]:
        """Yield the fields of the form of a kind, each with whether it has to be filled in."""
        for one in self.in_use:
            if use := one.forms.get(kind_id, HIDDEN):
                yield one, use == REQUIRED

    def label(self, change: str) -> str:
        """Return what pages call the field of a change in a ticket's history."""
        if change.startswith(CUSTOM_PREFIX):
            field_id = change.removeprefix(CUSTOM_PREFIX)
            return self.by_id[field_id].name if field_id in self.by_id else field_id
        return label_of(change)

    def shown(self, change: str, text: str) -> str:
        """Return a text of a change in a ticket's history as pages show it."""
        for one in DEFINED:
            if change == one.name:
                return self.name(one, text)
        if change == SNOOZED and text == UNTIL_ANSWER:
            return _("an answer")
        if change == DESCRIPTION.name:
            return DESCRIPTION.told(text)
        if text and (choice := _CHOICES.get(change)):
            return choice.words(text).word
        own = self.by_id.get(change.removeprefix(CUSTOM_PREFIX)) if change.startswith(CUSTOM_PREFIX) else None
        return own.shown(text) if own else text

    def told(self, change: str, before: str, after: str) -> dict[str, str]:
        """Return a change in a ticket's history as pages show it."""
        shown = self.shown
        return {
            "field": change,
            "label": self.label(change),
            "before": shown(change, before),
            "after": shown(change, after),
        }

    def shown_values(self, kind: str, values: Mapping[str, str]) -> dict[str, Any]:
        """Return the kind of a ticket, and its custom fields in the desk's order: those that its kind asks, and the
        others that have a value."""
        asked = {one.id for one, _ in self.asked(kind)}
        rows = [
            {
                "label": one.name,
                "value": one.shown(values.get(one.id, "")),
                "is_kept": not one.fits(values.get(one.id, "")),
            }
            for one in self.fields
            if one.id in asked or values.get(one.id)
        ]
        rows += [{"label": one, "value": values[one], "is_kept": True} for one in sorted(values.keys() - self.by_id)]
        return {"kind": self.name(KIND, kind), "has_kinds": bool(self.kinds), "rows": rows}

    def texts(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Return kind, group and each custom field among a ticket's values as pages show them, by the names of
        changes."""
        changes = CUSTOM.by_change(values.get(CUSTOM.name) or {})
        changes |= {field.name: values[field.name] for field in DEFINED if field.name in values}
        return {name: self.shown(name, text) for name, text in changes.items()}

    def labels(self, *compared: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield name and label of each field that versions of a ticket have, as texts by the names of changes."""
        for name in BY_NAME:
            if name == CUSTOM.name:
                own = sorted({one for texts in compared for one in texts if one.startswith(CUSTOM_PREFIX)})
                yield from ((one, self.label(one)) for one in sorted(own, key=self._place))
            else:
                yield name, label_of(name)

    def _place(self, change: str) -> int:
        known = [f"{CUSTOM_PREFIX}{one.id}" for one in self.fields]
        return known.index(change) if change in known else len(known)

    def check(self, wanted: Mapping[str, str]) -> None:
        """Raise Invalid for new values, by the names of changes, that this desk does not offer."""
        for change, value in wanted.items():
            if not value:
                continue
            if of := next((field for field in DEFINED if field.name == change), None):
                if not any(one.id == value for one in self.in_use_of(of)):
                    raise of.missing
                continue
            field_id = change.removeprefix(CUSTOM_PREFIX)
            known = self.by_id.get(field_id)
            if known is None or known.is_archived:
                raise Invalid(_("There is no such field."), field=field_id)
            if not known.fits(value):
                offered = _("“%(name)s” does not offer “%(value)s”.") % {"name": known.name, "value": value}
                raise Invalid(offered, field=field_id)


NOTHING_DEFINED: Final = Definitions()


def operator_word(name: str) -> str:
    """Return a name as the search has it in front of a colon: lower case, hyphens for what is no letter or digit."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.casefold()).split())


def of(tenant: TenantContext) -> Definitions:
    """Return what the desk has defined: no read in a request of a page."""
    return of_setup(tenant.tenant_id, setup.of(tenant))


def of_setup(tenant_id: str, stored: DeskSetup) -> Definitions:
    return _parsed(tenant_id, stored.version, stored.part(PART), stored.part(setup.GROUPS))


@lru_cache(maxsize=512)
def _parsed(tenant_id: str, version: int, text: str, groups: str) -> Definitions:
    """Parse each version of each desk once in a process. The text is part of the key, so that an entry is right even
    where a desk was restored to an earlier version."""
    return Definitions.parse(text, version, groups)


def is_stored_text(value: Any) -> Any:
    """Tell whether a text is one that `Definitions.text` wrote: for rows that are brought in."""
    found = Definitions.parse(value)
    kinds = all(custom_values.KIND_ID.match(one.id) for one in found.kinds)
    return kinds and all(custom_values.is_field_id(one.id) and isinstance(one.name, str) for one in found.fields)
