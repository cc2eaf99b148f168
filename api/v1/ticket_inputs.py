"""Say what of tickets the API is sent. What a text may be is the rules' to say; here stands what no rule could read."""

from __future__ import annotations

from typing import Annotated, Any, Final, Self

from pydantic import ConfigDict, Field, Strict, model_validator

from api.door.answers import ApiInput
from api.door.sentences import TextPattern
from portal.errors import Invalid
from tickets.ticket import fields
from tickets.ticket.fields import COMMENT_LIMIT, DESCRIPTION_LIMIT, TAG_LIMIT, TAGS_LIMIT, TITLE_LIMIT, Priority, Status

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
_Priority = Annotated[Priority, Strict(False)]
_Status = Annotated[Status, Strict(False)]


class _TicketValues(ApiInput):
    """Values of a ticket's fields."""

    @property
    def values(self) -> dict[str, Any]:
        """Return the values that are given, as the rules take them: null empties a field. Raises Invalid."""
        given: dict[str, Any] = {}
        for name in self.model_fields_set - {"version"}:
            value = getattr(self, name)
            given[name.removesuffix("_id")] = tag_list(value) if name == "tags" else value or ""
        return given


class TicketToCreate(_TicketValues):
    """A new ticket. Its requester is the API key."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "title": "The printer on the third floor",
                "description": "It prints *every* page twice.",
                "priority": "high",
                "tags": ["printer"],
            }
        }
    )

    title: _TitleText
    description: _Description = ""
    priority: _Priority = Priority.NORMAL
    tags: _Tags = Field(default_factory=list)
    resolver_id: _UserId | None = Field(None, description="a member who is an agent or above, or null for nobody")


class TicketToChange(_TicketValues):
    """The fields that are to change, at least one; the others stay."""

    model_config = ConfigDict(
        json_schema_extra={"minProperties": 1, "example": {"status": "resolved", "priority": "low"}}
    )

    title: _TitleText = _LEFT
    description: _Description = _LEFT
    priority: _Priority = _LEFT
    tags: _Tags = _LEFT
    status: _Status = _LEFT
    resolver_id: _UserId | None = Field(None, description="a member who is an agent or above, or null for nobody")
    version: _Version | None = Field(
        None, description="the version that you saw: what others changed since stays, or is a conflict in a same field"
    )

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_fields_set - {"version"}:
            raise ValueError("Name at least one field that is to change.")
        return self


class CommentToAdd(ApiInput):
    """A comment, and the status that the ticket gets with it, where one is given."""

    model_config = ConfigDict(json_schema_extra={"example": {"body": "It works again after a **restart**."}})

    body: _Body
    status: _Status | None = Field(None, description="needs the scope tickets:write as well")


class NoteToAdd(ApiInput):
    """An internal note."""

    model_config = ConfigDict(json_schema_extra={"example": {"body": "The printer is from 1998."}})

    body: _Body


class TicketNamed(ApiInput):
    """One of the tickets of a bulk change, in the version that the caller saw, where one is given."""

    number: _Number
    version: _Version | None = None


class StatusOfMany(ApiInput):
    """One status for many tickets, all or none."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"status": "closed", "tickets": [{"number": 7, "version": 2}, {"number": 8}]}}
    )

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
