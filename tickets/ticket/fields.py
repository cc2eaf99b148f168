"""Declare the fields of a ticket: each once, with its type, label and limits, and where it is shown.

Everything that handles tickets goes by FIELDS: index projections and rows, forms, filters, columns, search operators,
events, export and import, the time machine, the check of a moved copy, a person's document and tables of tickets.
The stored item, the schemas of the API and the admin's model name the fields themselves, as templates do with those
that are no ChoiceField; tests/desk/test_every_field.py takes a ticket with all fields through all of these, and fails
where one is left out.

A field's attribute in SummaryItem has the field's name; only the description is stored in DetailItem.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import plain_text
from portal.errors import Invalid
from portal.web import locales
from portal.web.locales import in_sentence
from tickets.ticket import custom_values

# --- values ---


TITLE_LIMIT = 200  # characters
DESCRIPTION_LIMIT = 50_000  # characters; at most 200 KB of UTF-8, half of DynamoDB's item limit
COMMENT_LIMIT = 20_000  # characters
TAG_LIMIT = 40  # characters
TAGS_LIMIT = 12
# A ticket of an archive keeps its number across a hole of so many; whoever counts all tickets reads those in it, too.
NUMBER_GAP = 1000

Values = Mapping[str, Any]  # of a ticket, by the names of its fields
FieldChange = tuple[str, str, str]  # a field, its text before and its text after

_TAG = re.compile(r"[^\s,#|<>]+\Z")


class ChoiceValue(StrEnum):
    """A value of a field that has a few."""

    @property
    def label(self) -> str:
        return locales.said(_VALUES[self.value])

    @property
    def word(self) -> str:
        return locales.said(self.value)


_VALUES: Final = {
    gettext_noop("open"): gettext_noop("Open"),
    gettext_noop("pending"): gettext_noop("Pending"),
    gettext_noop("resolved"): gettext_noop("Resolved"),
    gettext_noop("closed"): gettext_noop("Closed"),
    gettext_noop("urgent"): gettext_noop("Urgent"),
    gettext_noop("high"): gettext_noop("High"),
    gettext_noop("normal"): gettext_noop("Normal"),
    gettext_noop("low"): gettext_noop("Low"),
    gettext_noop("mail"): gettext_noop("Mail"),
    gettext_noop("form"): gettext_noop("Form"),
    gettext_noop("api"): gettext_noop("API"),
    gettext_noop("hand"): gettext_noop("By hand"),
    gettext_noop("good"): gettext_noop("Good"),
    gettext_noop("bad"): gettext_noop("Bad"),
}


class Status(ChoiceValue):
    OPEN = "open"  # needs an answer from us
    PENDING = "pending"  # waits for somebody else
    RESOLVED = "resolved"  # answered, may come back
    CLOSED = "closed"  # done; can only be reopened


UNRESOLVED: Final = (Status.OPEN, Status.PENDING)


def is_unresolved(status: str) -> bool:
    return status in UNRESOLVED


MOVES: dict[Status, tuple[Status, ...]] = {
    Status.OPEN: (Status.PENDING, Status.RESOLVED, Status.CLOSED),
    Status.PENDING: (Status.OPEN, Status.RESOLVED, Status.CLOSED),
    Status.RESOLVED: (Status.OPEN, Status.CLOSED),
    Status.CLOSED: (Status.OPEN,),
}


class Priority(ChoiceValue):
    URGENT = "urgent"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class Channel(ChoiceValue):
    """The way by which a ticket came."""

    MAIL = "mail"
    FORM = "form"
    API = "api"
    HAND = "hand"


class Rating(ChoiceValue):
    """A requester's judgement of how their ticket was handled."""

    GOOD = "good"
    BAD = "bad"


# --- texts ---


def title(text: str) -> str:
    """Return a title as it is stored: one line. Raises Invalid where it shows nothing or is too long."""
    stored = plain_text.line(text)
    if not plain_text.has_visible_text(stored):
        raise Invalid(_("A ticket needs a title."), field="title")
    return locales.within(stored, TITLE_LIMIT, "title")


def description(text: str) -> str:
    """Return a description as it is stored, perhaps empty. Raises Invalid where it is too long."""
    return locales.within(plain_text.block(text), DESCRIPTION_LIMIT, "description")


def comment(text: str) -> str:
    """Return a comment as it is stored. Raises Invalid where it shows nothing or is too long."""
    stored = plain_text.block(text)
    if not plain_text.has_visible_text(stored):
        raise Invalid(_("Write something first."), field="body")
    return locales.within(stored, COMMENT_LIMIT, "body")


def tag_list(text: str) -> list[str]:
    """Return tags from text separated by commas, as `texts.word` writes them, no duplicates, in order.

    Raises Invalid on too many, too long, or characters that a tag cannot have.
    """
    tags: list[str] = []
    for typed in text.split(","):
        tag = plain_text.word(typed)
        if not tag and typed.strip():
            raise Invalid(_("A tag needs characters that can be seen."), field="tags")
        if not tag or tag in tags:
            continue
        if len(tag) > TAG_LIMIT:
            told = {"tag": tag[:20], "count": len(tag), "limit": TAG_LIMIT}
            sentence = _("The tag “%(tag)s…” has %(count)s characters; %(limit)s are allowed.")
            raise Invalid(sentence % told, field="tags")
        if plain_text.REPLACEMENT in tag:
            sentence = _("The tag “%(tag)s” contains a character that cannot be stored, shown as �.")
            raise Invalid(sentence % {"tag": tag}, field="tags")
        if not _TAG.match(tag):
            sentence = _("The tag “%(tag)s” contains one of # | < >, which tags cannot have.")
            raise Invalid(sentence % {"tag": tag}, field="tags")
        tags.append(tag)
    if len(tags) > TAGS_LIMIT:
        sentence = _("A ticket can have at most %(limit)s tags; these are %(count)s.")
        raise Invalid(sentence % {"limit": TAGS_LIMIT, "count": len(tags)}, field="tags")
    return tags


# --- kinds of fields ---


@dataclass(frozen=True, kw_only=True)
class TicketField:
    """A field, and the base of its kinds.

    `named` is its label in English. `about` says in a few words what it may hold, `example` is a value for documents,
    `initial` the value of a new ticket for which none is given. A field that is listed is projected into the indexes
    and shown by lists. Where the history does not tell all of a former value, `kept_as` is the attribute of its entries
    that does. A field that is fixed is changed by nobody of the desk: it is given when the ticket is made, or by its
    requester.
    """

    name: str
    named: str
    about: str
    example: Any
    initial: Any = ""
    is_listed: bool = True
    is_fixed: bool = False
    kept_as: str = ""
    told_as: str = "text"  # its type in events, which add "or null" where it is optional

    @property
    def label(self) -> str:
        return locales.said(self.named)

    def clean(self, value: Any) -> Any:
        """Return a value as tickets hold it. Raises Invalid."""
        return value

    def stored(self, value: Any) -> Any:
        """Return a value of `clean` as the summary stores it."""
        return value

    def text(self, value: Any) -> str:
        return str(value)

    def from_text(self, text: str) -> Any:
        """Return the stored value that `text` made this of."""
        return text

    def typed(self, value: Any) -> str:
        """Return a value as people type it into a form."""
        return self.text(value)

    def shown(self, value: Any) -> str:
        return self.text(value)

    def changes(self, stored: Any, wanted: Any) -> Iterator[FieldChange]:
        """Yield what the history tells of a change from a stored value to a wanted one, be they the same or not."""
        yield self.name, self.text(stored), self.text(wanted)

    def changed(self, stored: Any, wanted: Any, names: Collection[str]) -> Any:
        """Return what the summary stores after those of `changes` that have these names."""
        return self.stored(wanted)

    def before(self, value: Any, change: str, text: str) -> Any:
        """Return the stored value before a change of this name, whose text before the history has."""
        return self.from_text(text)

    def wish(self, wished: Any, change: str, text: str) -> Any:
        """Return the wish to take back a change of this name, with what is `wished` already of this field."""
        return self.from_text(text)

    def dumped(self, value: Any) -> Any:
        return self.stored(value)


@dataclass(frozen=True, kw_only=True)
class TextField(TicketField):
    """A text that people write, of up to `limit` characters. `rule` brings it into its stored form."""

    rule: Callable[[str], str]
    limit: int

    def clean(self, value: Any) -> str:
        return self.rule(value)


@dataclass(frozen=True, kw_only=True)
class LongTextField(TextField):
    """A text of several lines, stored beside the summary. The history has its length."""

    is_listed: bool = False

    def text(self, value: Any) -> str:
        return f"{len(value):,} characters" if value else ""

    def told(self, text: str) -> str:
        """Return what the history has of a value as pages show it."""
        count = text.partition(" ")[0].replace(",", "")
        return _("%(num)s characters") % {"num": locales.current().number(int(count))} if count.isdecimal() else text

    def typed(self, value: Any) -> str:
        return str(value)

    def shown(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True, kw_only=True)
class ChoiceField(TicketField):
    """One of a few words, or "" where it is optional. All but the status are filters and search operators, too.

    `is_later` says that tickets and exports of before the field have no value, which stands for the initial one.
    Lists show the values as words, or as symbols of the same names.
    """

    words: type[ChoiceValue]
    is_optional: bool = False
    is_later: bool = False
    is_symbol: bool = False
    none: str = gettext_noop("None")  # in English, as pages show ""

    def clean(self, value: Any) -> Any:
        if not value and self.is_optional:
            return ""
        try:
            return self.words(value)
        except ValueError as error:
            raise no_such(self) from error

    def stored(self, value: Any) -> str:
        return str(value)

    def shown(self, value: Any) -> str:
        return self.words(value).label if value else _(self.none)

    @property
    def choices(self) -> list[tuple[str, str]]:
        return [("", _(self.none))] * self.is_optional + [(word.value, word.label) for word in self.words]

    def offered(self, current: str) -> list[dict[str, Any]]:
        """Return the values as a template offers them, this one chosen."""
        return [{"value": value, "label": label, "current": value == current} for value, label in self.choices]


@dataclass(frozen=True, kw_only=True)
class TagsField(TicketField):
    """A list of words."""

    initial: Any = ()
    told_as: str = "list of texts"

    def clean(self, value: Any) -> list[str]:
        return list(value)

    stored = clean

    def text(self, value: Any) -> str:
        return ", ".join(value)

    def from_text(self, text: str) -> list[str]:
        return text.split(", ") if text else []


@dataclass(frozen=True, kw_only=True)
class PersonField(TicketField):
    """Somebody of the desk: a user id, "" for nobody, with the name beside it. The history has the name."""

    def shown(self, value: Any) -> str:
        return value or _("Unassigned")


@dataclass(frozen=True, kw_only=True)
class DefinedField(TicketField):
    """One of a few that the desk has defined, by its id; "" for none. `none` is what pages call that, in English."""

    pattern: re.Pattern[str]
    none: str

    def clean(self, value: Any) -> str:
        if value and not (isinstance(value, str) and self.pattern.match(value)):
            raise self.missing
        return value or ""

    @property
    def missing(self) -> Invalid:
        """Return the refusal of an id that the desk has not."""
        return no_such(self)


@dataclass(frozen=True, kw_only=True)
class CustomFields(TicketField):
    """The values of the desk's own fields, by their ids. The history tells of each one as of a field `custom.<id>`.

    A wish names those that are to change, "" for one that is to be empty; the others stay.
    """

    told_as: str = "map of texts"

    def clean(self, value: Any) -> dict[str, str]:
        return custom_values.cleaned(value)

    def stored(self, value: Any) -> dict[str, str] | None:
        return {field_id: text for field_id, text in value.items() if text} or None

    def text(self, value: Any) -> str:
        return "; ".join(f"{field_id}: {text}" for field_id, text in sorted(value.items()))

    def changes(self, stored: Any, wanted: Any) -> Iterator[FieldChange]:
        for name, text in self.by_change(wanted).items():
            yield name, stored.get(name.removeprefix(CUSTOM_PREFIX), ""), text

    def by_change(self, values: Any) -> dict[str, str]:
        return {f"{CUSTOM_PREFIX}{field_id}": values[field_id] for field_id in sorted(values)}

    def changed(self, stored: Any, wanted: Any, names: Collection[str]) -> dict[str, str] | None:
        chosen = {one: text for one, text in wanted.items() if f"{CUSTOM_PREFIX}{one}" in names}
        return self.stored({**stored, **chosen})

    def before(self, value: Any, change: str, text: str) -> dict[str, str]:
        return self.stored({**value, change.removeprefix(CUSTOM_PREFIX): text}) or {}

    def wish(self, wished: Any, change: str, text: str) -> dict[str, str]:
        return {**(wished or {}), change.removeprefix(CUSTOM_PREFIX): text}

    def dumped(self, value: Any) -> dict[str, str]:
        return dict(value)


def no_such(field: TicketField) -> Invalid:
    """Return the refusal of a value that the field has not."""
    return Invalid(_("There is no such %(field)s.") % {"field": in_sentence(field.label)}, field=field.name)


# --- the fields ---
CUSTOM_PREFIX: Final = "custom."  # begins the name of a change of one custom field

TITLE: Final = TextField(
    name="title",
    named=gettext_noop("Title"),
    about=gettext_noop("one line"),
    example="The printer on the third floor",
    rule=title,
    limit=TITLE_LIMIT,
)
DESCRIPTION: Final = LongTextField(
    name="description",
    named=gettext_noop("Description"),
    about=gettext_noop("in Markdown, perhaps empty"),
    example="It prints *every* page twice.",
    kept_as="former_description",
    rule=description,
    limit=DESCRIPTION_LIMIT,
)
STATUS: Final = ChoiceField(
    name="status",
    named=gettext_noop("Status"),
    about=gettext_noop("open, pending, resolved or closed"),
    example="open",
    initial=Status.OPEN,
    words=Status,
)
PRIORITY: Final = ChoiceField(
    name="priority",
    named=gettext_noop("Priority"),
    about=gettext_noop("urgent, high, normal or low"),
    example="normal",
    initial=Priority.NORMAL,
    words=Priority,
)
CHANNEL: Final = ChoiceField(
    name="channel",
    named=gettext_noop("Channel"),
    about=gettext_noop("mail, form, api or hand"),
    example="mail",
    initial=Channel.HAND,
    is_fixed=True,
    is_later=True,
    is_symbol=True,
    words=Channel,
)
RATING: Final = ChoiceField(
    name="rating",
    named=gettext_noop("Rating"),
    about=gettext_noop("good or bad, as its requester has rated it"),
    example=None,
    is_fixed=True,
    is_optional=True,
    is_symbol=True,
    none=gettext_noop("Not rated"),
    words=Rating,
)
TAGS: Final = TagsField(
    name="tags", named=gettext_noop("Tags"), about=gettext_noop("perhaps empty"), example=["printer"]
)
ASSIGNEE: Final = PersonField(
    name="resolver",
    named=gettext_noop("Assignee"),
    about=gettext_noop("an agent, or nobody"),
    example=None,
    kept_as="former_resolver",
)
KIND: Final = DefinedField(
    name="kind",
    named=gettext_noop("Kind"),
    about=gettext_noop("the id of one of the desk's kinds of tickets, or null"),
    example="kind_1",
    pattern=custom_values.KIND_ID,
    none=gettext_noop("No kind"),
)
GROUP: Final = DefinedField(
    name="group",
    named=gettext_noop("Group"),
    about=gettext_noop("the id of one of the desk's groups, or null"),
    example="group_1",
    pattern=custom_values.GROUP_ID,
    none=gettext_noop("No group"),
)
CUSTOM: Final = CustomFields(
    name="custom",
    named=gettext_noop("Custom fields"),
    about=gettext_noop("the values of the desk's own fields, by their ids"),
    initial={},
    example={"text_1": "A-1042", "number_2": "12.5"},
)

# In the order of documents, of pages that compare two versions, and of columns.
FIELDS: Final[tuple[TicketField, ...]] = (
    TITLE, DESCRIPTION, KIND, STATUS, PRIORITY, CHANNEL, RATING, TAGS, CUSTOM, GROUP, ASSIGNEE,
)  # fmt: skip
BY_NAME: Final = {field.name: field for field in FIELDS}
# No field of a form: a person outside the desk, for whom the ticket is. The history tells of a change as of a field.
REQUESTER: Final = "requester"
# No fields of a form either: what takes a ticket out of all lists and numbers, and the numbers of the tickets that were
# merged into this one.
MERGED_INTO: Final = "merged_into"
MERGED: Final = "merged"
SPAM: Final = "spam"
# Until when a ticket is snoozed, as due_marks.snooze_text writes it.
SNOOZED: Final = "snoozed"
_OTHERS: Final = {
    REQUESTER: gettext_noop("Requester"),
    MERGED_INTO: gettext_noop("Merged into"),
    MERGED: gettext_noop("Merged"),
    SPAM: gettext_noop("Spam"),
    SNOOZED: gettext_noop("Snoozed"),
}
CHOICES: Final = tuple(field for field in FIELDS if isinstance(field, ChoiceField))
# Those that are one of a few which the desk has defined.
DEFINED: Final = tuple(field for field in FIELDS if isinstance(field, DefinedField))
OPTIONAL: Final = frozenset(
    {*(field.name for field in DEFINED), *(field.name for field in CHOICES if field.is_optional)}
)
# The initial values of fields that came later: what was made before has none of them.
LATER: Final = {
    **{field.name: field.initial for field in CHOICES if field.is_optional or field.is_later},
    **{field.name: field.initial for field in DEFINED},
}
# The choices that people change.
CHANGED: Final = tuple(field for field in CHOICES if not field.is_fixed)
# The choices that pages show each in the same way; status and priority stand out.
PLAIN: Final = tuple(field for field in CHOICES if field not in (STATUS, PRIORITY))
# The choices that are asked of rows. Lists of a status are served by a key.
FILTERS: Final = {field.name: field for field in CHOICES if field is not STATUS}
# The fields that the form of a ticket edits; status and assignee have rules of their own.
EDITED: Final = tuple(field for field in FIELDS if field not in (STATUS, ASSIGNEE) and not field.is_fixed)
# Those of them that are attributes of the summary.
SUMMARISED: Final = tuple(field for field in EDITED if field is not DESCRIPTION)
FIXED: Final = tuple(field for field in FIELDS if field.is_fixed)


def label_of(change: str) -> str:
    """Return what pages call the field of a change in the history, but for the desk's own fields."""
    return BY_NAME[change].label if change in BY_NAME else _(_OTHERS.get(change) or change.capitalize())


def of_change(name: str) -> TicketField | None:
    """Return the field that a change in the history tells of, None for what is no field, such as the requester."""
    return CUSTOM if name.startswith(CUSTOM_PREFIX) else BY_NAME.get(name)


def known(names: Iterable[str]) -> None:
    """Raise TypeError where one of these is no field's name."""
    if unknown := set(names) - BY_NAME.keys():
        raise TypeError(f"a ticket has no field {sorted(unknown)}")


def changeable(names: Iterable[str]) -> None:
    """Raise TypeError where one of these is no field's name, or that of a field which nobody of the desk changes."""
    known(names)
    if fixed := {field.name for field in FIXED}.intersection(names):
        raise TypeError(f"nothing changes {sorted(fixed)} of a ticket")
