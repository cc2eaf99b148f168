"""Say how tickets look in the API, as it sends and takes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, Self, cast

from pydantic import Field, Strict, model_validator

from api.edge.answers import ApiInput, ApiModel, ApiQuery
from api.edge.sentences import TextPattern
from portal.errors import Invalid
from tenants.tenancy.context import TenantContext
from tickets.attachments.attachments import MOST_FILES
from tickets.desk import changing
from tickets.desk.filters import TicketFilter
from tickets.search.results import Hit, Where
from tickets.search.search_query import TEXT_LIMIT
from tickets.ticket import custom_values, due_marks, fields
from tickets.ticket.due_marks import DueMarks
from tickets.ticket.fields import (
    COMMENT_LIMIT,
    CUSTOM,
    DESCRIPTION_LIMIT,
    FIELDS,
    OPTIONAL,
    TAG_LIMIT,
    TAGS_LIMIT,
    TITLE_LIMIT,
    Channel,
    Priority,
    Rating,
    Status,
)
from tickets.ticket.stored import FileMap, SummaryItem, entry_id

Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=["2026-11-20T09:30:00.000000Z"])]
EntryId = Annotated[str, Field(min_length=1, max_length=64, description="the id of an entry of the history")]
Number = Annotated[int, Field(ge=1, le=10**15 - 1)]
_Sort = Literal["-updated", "updated", "-created", "created", "-priority", "priority", "requester", "-requester"]
_StatusAsked = Literal["open", "pending", "resolved", "closed", "unresolved", "any"]
_DAY: Final = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_Days = Annotated[
    str,
    TextPattern(
        rf"^({_DAY}(\.\.({_DAY})?)?|\.\.{_DAY})?$",
        "This takes a day as 2026-11-20, or days as 2026-11-01..2026-11-07.",
    ),
]
_Tag = Annotated[str, Field(max_length=TAG_LIMIT), TextPattern("^[^,#|<>]*$", "This takes one tag.")]
_Resolver = Annotated[str, TextPattern("^(none|[0-9a-f]{32})$", "This needs the id of a member, or none.")]

_CUSTOM_ID: Final = custom_values.FIELD_ID.pattern.removesuffix(r"\Z")
_CustomAsked = Annotated[
    str,
    Field(max_length=1000),
    TextPattern(
        rf"^{_CUSTOM_ID}:[^;]+(;{_CUSTOM_ID}:[^;]+)*$",
        "This takes the id of a field, a colon and a value; a semicolon stands between two of them.",
    ),
]
_CustomId = Annotated[str, TextPattern(rf"^{_CUSTOM_ID}$", "This is the id of no custom field.")]
_CustomValues = Annotated[
    dict[_CustomId, str | int | float | bool | None],
    Field(
        max_length=60,
        description="values of the desk's own fields, by their ids; null or an empty text empties one, others stay",
        examples=[{"text_1": "A-1042", "number_2": 12.5, "date_3": None}],
    ),
]
_Kind = Annotated[str, TextPattern("^kind_[1-9][0-9]?$", "This is the id of no kind.")]
GroupId = Annotated[str, TextPattern("^group_[1-9][0-9]?$", "This is the id of no group.")]

FILE: Final[dict[str, Any]] = {
    "id": "4f1c2d3e5a6b47c8d9e0f1a2b3c4d5e6",
    "name": "report.pdf",
    "size": 48210,
    "type": "application/pdf",
    "state": "unscanned",
}
_LISTED: Final[dict[str, Any]] = {
    "number": 7,
    **{field.name: field.example for field in FIELDS if field.is_listed},
    "resolver": {"id": "0a1b2c3d4e5f40718293a4b5c6d7e8f9", "name": "Bob Example"},
    "requester_name": "Alice Example",
    "created_at": "2026-11-20T09:30:00.000000Z",
    "updated_at": "2026-11-20T09:45:00.000000Z",
    "comment_count": 0,
    "version": 2,
    "resolved_at": None,
    "reopened_at": None,
    "commented_at": None,
    "rated_at": None,
    "snoozed": None,
    "target": "first",
    "due_at": "2026-11-20T13:30:00.000000Z",
    "missed_at": None,
}


class PersonOut(ApiModel):
    """A member of the desk, or somebody who was one."""

    id: str
    name: str


class TicketInList(ApiModel, json_schema_extra={"example": _LISTED}):
    """A ticket as lists have it."""

    number: int
    title: str
    kind: str | None = Field(description="the id of one of the desk's kinds; see `GET /fields`")
    group: str | None = Field(description="the id of one of the desk's groups; see `GET /fields`")
    status: Status
    priority: Priority
    channel: Channel = Field(description="the way by which it came")
    rating: Rating | None = Field(description="by its requester")
    tags: list[str]
    custom: dict[str, str] = Field(
        description="values of the desk's own fields, by their ids: texts, numbers as 12.5, days as 2026-11-20, yes of "
        "a checkbox; what is empty is missing"
    )
    resolver: PersonOut | None = Field(description="the agent to whom it is assigned")
    requester_name: str
    created_at: Moment
    updated_at: Moment
    comment_count: int
    version: int = Field(description="grows with each change of a field, and not with comments")
    resolved_at: Moment | None
    reopened_at: Moment | None
    commented_at: Moment | None
    rated_at: Moment | None
    snoozed: str | None = Field(description="the moment until which it is snoozed, or `answer`")
    target: Literal["first", "next", "solution"] | None = Field(description="the next target that runs; see targets")
    due_at: Moment | None = Field(description="the moment of that target, which may be over")
    missed_at: Moment | None = Field(description="when a target was missed last")

    @classmethod
    def of(cls, stored: SummaryItem, updated_at: str = "", **more: Any) -> Self:
        """Make it of a list's row, or of a ticket's summary and what of it depends on the caller."""
        assignee = PersonOut(id=stored.resolver, name=stored.resolver_name) if stored.resolver else None
        values = {field.name: getattr(stored, field.name) for field in FIELDS if field.is_listed}
        marks = DueMarks.read(stored.due)
        return cls(
            number=int(stored.number),
            **(values | {name: values[name] or None for name in OPTIONAL} | {"resolver": assignee}),
            requester_name=stored.requester_name,
            created_at=stored.created_at,
            updated_at=updated_at or stored.updated_at,
            comment_count=int(stored.comment_count),
            version=int(stored.version),
            resolved_at=stored.resolved_at or None,
            reopened_at=stored.reopened_at or None,
            commented_at=stored.commented_at or None,
            rated_at=stored.rated_at or None,
            snoozed=due_marks.snooze_text(due_marks.snoozed(stored.due, stored.status)) or None,
            target=cast(Any, marks.target or None),
            due_at=due_marks.stamp(marks.at) if marks.at else None,
            missed_at=due_marks.stamp(marks.missed) if marks.missed else None,
            **more,
        )


class TicketInFull(
    TicketInList,
    json_schema_extra={
        "example": _LISTED
        | {
            "description": "It prints *every* page twice.",
            "requester_id": "5f0c1d2e3a4b4c5d8e6f708192a3b4c5",
            "noted_at": None,
            "merged_into": None,
            "merged": [],
            "spam_at": None,
        }
    },
):
    """A ticket with its description. Its comments are in its activity."""

    description: str = Field(description="in Markdown, perhaps empty")
    requester_id: str | None = Field(
        description="of a member, of a key, or with rq_ in front of a person outside; or null"
    )
    noted_at: Moment | None = Field(description="when the last internal note was added; null without notes:read")
    merged_into: int | None = Field(description="the number of the ticket that it was merged into")
    merged: list[int] = Field(description="the numbers of the tickets that were merged into this one")
    spam_at: Moment | None = Field(description="when it was marked as spam")

    @classmethod
    def whole(cls, tenant: TenantContext, summary: SummaryItem, description: str) -> Self:
        """Make it of the stored items, as this caller may see it."""
        return cls.of(
            summary,
            changing.updated_at(tenant, summary),
            description=description,
            requester_id=summary.requester or None,
            noted_at=(summary.noted_at or None) if tenant.is_agent else None,
            merged_into=int(summary.merged_into) if summary.merged_into else None,
            merged=[int(one) for one in summary.merged or ()],
            spam_at=summary.spam_at or None,
        )

    @property
    def tag_parts(self) -> tuple[object, ...]:
        """Return what tells this representation from every other one of the ticket."""
        return self.number, self.version, self.updated_at, self.comment_count, self.noted_at


class TicketList(ApiModel, json_schema_extra={"example": {"data": [_LISTED], "sorted_among": None, "next": None}}):
    """A page of tickets in the order that was asked for."""

    data: list[TicketInList]
    sorted_among: int | None = Field(
        None, description="how many tickets were sorted, those that changed last, where the list has more; else null"
    )
    next: str | None = Field(description="the address of the next page; a page may be short where there is one")


class ChangedTickets(ApiModel, json_schema_extra={"example": {"count": 2, "status": "closed"}}):
    """Count what a bulk change did."""

    count: int
    status: Status


class SnippetPiece(ApiModel):
    """A stretch of text that was sought, or that was not."""

    text: str
    is_match: bool


_FOUND: Final[dict[str, Any]] = _LISTED | {
    "found_in": "description",
    "entry": None,
    "snippet": [{"text": "It ", "is_match": False}, {"text": "prints", "is_match": True}],
}


class FoundTicket(TicketInList, json_schema_extra={"example": _FOUND}):
    """A ticket that a search found, and where."""

    found_in: Where = Field(description="where the snippet stands; notes only with notes:read")
    entry: str | None = Field(description="the id in the ticket's activity, of a snippet from a comment or note")
    snippet: list[SnippetPiece] = Field(description="in plain text; empty where the title says it all")

    @classmethod
    def hit(cls, tenant: TenantContext, hit: Hit) -> Self:
        """Make it of what the search found, as this caller may see it."""
        pieces = [SnippetPiece(text=piece.text, is_match=piece.is_match) for piece in hit.snippet]
        return cls.of(
            hit.summary,
            changing.updated_at(tenant, hit.summary),
            found_in=hit.where,
            entry=entry_id(hit.entry.sk) if hit.entry else None,
            snippet=pieces,
        )


class FoundTickets(ApiModel, json_schema_extra={"example": {"data": [_FOUND], "explanations": [], "next": None}}):
    """A page of tickets that a search found, the best first."""

    data: list[FoundTicket]
    explanations: list[str] = Field(description="sentences for people, about parts of the text that were ignored")
    next: str | None = Field(description="the address of the next page; a page may be short where there is one")


class _Filtered(ApiQuery):
    """Filters of tickets, as the address of the queue has them."""

    resolver: _Resolver | None = Field(None, description="a member's id, or none")
    priority: Priority | None = None
    channel: Channel | None = None
    rating: Rating | None = None
    kind: _Kind | None = Field(None, description="the id of a kind")
    group: GroupId | None = Field(None, description="the id of a group")
    custom: _CustomAsked | None = Field(
        None,
        description="values of the desk's own fields: `text_1:A-1042`, or for numbers and days a range as in "
        "`number_2:10..20`; a semicolon stands between two of them",
    )
    snoozed: Literal["yes", "no"] | None = None
    sla: Literal["overdue", "due_soon", "missed"] | None = Field(None, description="by the desk's targets")
    tag: _Tag | None = None
    created: _Days | None = Field(
        None, description="days in the time zone of the desk, as 2026-11-20, 2026-11-01..2026-11-07 or 2026-11-01.."
    )
    resolved: _Days | None = Field(None, description="days on which it was resolved last")
    reopened: _Days | None = Field(None, description="days on which it was reopened last")
    commented: _Days | None = Field(None, description="days on which it was commented on last")
    rated: _Days | None = Field(None, description="days on which it was rated last")
    after: str | None = Field(None, max_length=2000, description="from `next` of the page before")

    @property
    def only(self) -> TicketFilter:
        """Return the filters beside status and resolver. Raises Invalid."""
        given = self.model_dump(exclude_none=True, exclude={"custom"})
        custom = dict(one.split(":", 1) for one in (self.custom or "").split(";") if one)
        try:
            return TicketFilter.parse({name: str(value) for name, value in given.items()} | custom)
        except Invalid as refused:
            if refused.field in custom:
                refused.field = CUSTOM.name  # as it is called in the address
            raise

    @property
    def resolver_id(self) -> str | None:
        """Return the agent's id, "" for nobody, None where every agent's tickets are asked for."""
        return {None: None, "none": ""}.get(self.resolver, self.resolver)


class TicketSearchQuery(_Filtered):
    """Which words, and among which tickets."""

    q: str = Field(min_length=1, max_length=TEXT_LIMIT, description="words, and operators as the search box takes them")
    status: _StatusAsked = "any"
    order: Literal["best", "newest"] = "best"


class TicketListQuery(_Filtered):
    """Which tickets."""

    status: _StatusAsked = "open"
    sort: _Sort = Field("-updated", description="a minus puts the greatest first")
    limit: int = Field(50, ge=1, le=100)


# --- inputs. What a text may be is the rules' to say; here stands what no rule could read ---


# The value of a field that a change does not name; null names it, and means nothing to most of them.
_LEFT: Final[Any] = None
MOST_AT_ONCE: Final = 49  # tickets of one bulk change: two items of its transaction each, and one for the answer

# The limits are those of the rules, held before white space at the ends, say, is taken away.
_TitleText = Annotated[str, Field(min_length=1, max_length=TITLE_LIMIT, description="one line")]
_Description = Annotated[str, Field(max_length=DESCRIPTION_LIMIT, description="in Markdown")]
_Body = Annotated[str, Field(min_length=1, max_length=COMMENT_LIMIT, description="in Markdown")]
_TagText = Annotated[
    str, Field(max_length=TAG_LIMIT), TextPattern("^[^,#|<>]+$", "A tag is not empty, and holds none of , # | < >.")
]
_Tags = Annotated[list[_TagText], Field(max_length=TAGS_LIMIT)]
_UserId = Annotated[
    str, TextPattern("^[0-9a-f]{32}$", "This needs the id of a member: 32 digits and letters from a to f.")
]
_Version = Annotated[int, Field(ge=1, le=10**10 - 1)]
_Number = Annotated[int, Field(ge=1, le=10**15 - 1)]
_Requester = Annotated[
    str,
    Field(
        min_length=3,
        max_length=400,
        description="a requester's id, an address, or `Name <address>`: an address that nobody has adds the person",
    ),
]
_Priority = Annotated[Priority, Strict(False)]
_Status = Annotated[Status, Strict(False)]


_ReadyAnswer = Annotated[
    str,
    Field(
        pattern="^ra_[0-9a-f]{32}$",
        description="a shared ready answer, counted as used: its text, filled for this ticket, where there is no body, "
        "and its changes of the ticket, for which the scope tickets:write is needed",
    ),
]
FileId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
_Files = Annotated[
    list[FileId],
    Field(max_length=MOST_FILES, description="ids of files that were sent by the forms of `POST /files`"),
]


class FileOut(ApiModel, json_schema_extra={"example": FILE}):
    """A file of a description, a comment or a note."""

    id: str
    name: str
    size: int = Field(description="in bytes")
    type: str = Field(description="a media type, by the content")
    state: str = Field(
        description="waiting, clean, refused, unscanned or removed: what a scanner says, where there is one"
    )

    @classmethod
    def all_of(cls, files: Iterable[FileMap]) -> list[Self]:
        """Make one of each file that an item lists."""
        return [cls(id=one.id, name=one.name, size=int(one.size), type=one.type, state=one.state) for one in files]


class _TicketValues(ApiInput):
    """Values of a ticket's fields."""

    @property
    def values(self) -> dict[str, Any]:
        """Return the values that are given, as the rules take them: null empties a field. Raises Invalid."""
        given: dict[str, Any] = {}
        for name in self.model_fields_set - {"version", "requester", "files"}:
            value = getattr(self, name)
            empty: Any = {} if name == "custom" else ""
            given[name.removesuffix("_id")] = tag_list(value) if name == "tags" else value or empty
        return given


class TicketToCreate(
    _TicketValues,
    json_schema_extra={
        "example": {
            "title": "The printer on the third floor",
            "description": "It prints *every* page twice.",
            "priority": "high",
            "tags": ["printer"],
        }
    },
):
    """A new ticket. Its requester is the person outside the desk who is named, else the API key."""

    title: _TitleText
    description: _Description = ""
    priority: _Priority = Priority.NORMAL
    tags: _Tags = Field(default_factory=list)
    kind: _Kind | None = Field(None, description="one of the desk's kinds; without it the desk's default one")
    group: GroupId | None = Field(None, description="one of the desk's groups")
    custom: _CustomValues = Field(default_factory=dict)
    resolver_id: _UserId | None = Field(None, description="a member who is an agent or above, or null for nobody")
    requester: _Requester | None = None
    files: _Files = Field(default_factory=list)


class TicketToChange(
    _TicketValues, json_schema_extra={"minProperties": 1, "example": {"status": "resolved", "priority": "low"}}
):
    """The fields that are to change, at least one; the others stay."""

    title: _TitleText = _LEFT
    description: _Description = _LEFT
    priority: _Priority = _LEFT
    tags: _Tags = _LEFT
    kind: _Kind | None = Field(None, description="one of the desk's kinds, or null for none")
    group: GroupId | None = Field(None, description="one of the desk's groups, or null for none")
    custom: _CustomValues = _LEFT
    status: _Status = _LEFT
    resolver_id: _UserId | None = Field(None, description="a member who is an agent or above, or null for nobody")
    requester: _Requester = _LEFT
    version: _Version | None = Field(
        None, description="the version that you saw: what others changed since stays, or is a conflict in a same field"
    )

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_fields_set - {"version"}:
            raise ValueError("Name at least one field that is to change.")
        return self


class _Written(ApiInput):
    """A text, or the ready answer whose text it is."""

    body: _Body = _LEFT
    ready_answer: _ReadyAnswer = _LEFT

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set & {"body", "ready_answer"}:
            raise ValueError("Send a body, or the id of a ready answer.")
        return self


class CommentToAdd(_Written, json_schema_extra={"example": {"body": "It works again after a **restart**."}}):
    """A comment, and the status that the ticket gets with it, where one is given."""

    status: _Status | None = Field(None, description="needs the scope tickets:write as well")
    cc: list[str] = Field(
        default_factory=list,
        max_length=20,
        description="mail addresses that get a copy, where the ticket's requester is outside the desk",
    )
    files: _Files = Field(default_factory=list)


class NoteToAdd(_Written, json_schema_extra={"example": {"body": "The printer is from 1998."}}):
    """An internal note."""

    files: _Files = Field(default_factory=list)


class CommentText(ApiInput, json_schema_extra={"example": {"body": "It works again after a *second* restart."}}):
    """Another text of a comment or an internal note."""

    body: _Body


class TicketNamed(ApiInput):
    """One of the tickets of a bulk change, in the version that the caller saw, where one is given."""

    number: _Number
    version: _Version | None = None


class StatusOfMany(
    ApiInput,
    json_schema_extra={"example": {"status": "closed", "tickets": [{"number": 7, "version": 2}, {"number": 8}]}},
):
    """One status for many tickets, all or none."""

    status: _Status
    tickets: Annotated[list[TicketNamed], Field(min_length=1, max_length=MOST_AT_ONCE)]

    @property
    def versions(self) -> dict[int, int | None]:
        """Return the versions by the tickets' numbers."""
        return {ticket.number: ticket.version for ticket in self.tickets}


def tag_list(tags: list[str]) -> list[str]:
    """Return tags as they are stored. Raises Invalid, also for one of white space alone."""
    if any(not tag.strip() for tag in tags):
        raise Invalid("A tag needs characters that can be seen.", field="tags")
    return fields.tag_list(",".join(tags))
