"""Say how the history of a ticket looks in the API."""

from __future__ import annotations

from typing import Any, Final, Literal, Self

from pydantic import ConfigDict, Field

from api.door.answers import ApiInput, ApiModel
from api.v1.ticket_schemas import Moment
from tickets.data import exporting
from tickets.desk.timelines import Activity

_COMMENT: Final[dict[str, Any]] = {
    "id": "5d1c2b3a4f5e",
    "kind": "comment",
    "at": "2026-11-20T09:45:00.000000Z",
    "by": {"id": "0a1b2c3d4e5f40718293a4b5c6d7e8f9", "name": "Bob Example"},
    "body": "It works again after a **restart**.",
}


class Author(ApiModel):
    """Say who wrote or did something: a member, a former one, or an API key. Without an account the id is null."""

    id: str | None
    name: str


class ChangedField(ApiModel):
    """A field's text before and after. Of a description it is only the length."""

    field: str
    before: str
    after: str


class ActivityEntry(ApiModel):
    """An entry of a ticket's history: a comment or an internal note with its body, or an event with what it changed."""

    model_config = ConfigDict(json_schema_extra={"example": _COMMENT})

    id: str
    kind: Literal["comment", "note", "event"]
    at: Moment
    by: Author
    body: str | None = Field(None, description="of comments and notes, in Markdown")
    verb: str | None = Field(None, description="of events")
    changes: list[ChangedField] | None = Field(None, description="of events")

    @classmethod
    def of(cls, entry: Activity) -> Self:
        return cls.model_validate(exporting.entry(entry))


class ActivityList(ApiModel):
    """A page of a ticket's history: the entries of a page oldest first, the newest page first."""

    model_config = ConfigDict(json_schema_extra={"example": {"data": [_COMMENT], "next": None}})

    data: list[ActivityEntry]
    next: str | None = Field(description="the address of the page with what came before")


class ActivityQuery(ApiInput):
    """Where a page of the history begins."""

    model_config = ConfigDict(extra="forbid", strict=False)

    after: str | None = Field(None, max_length=2000, description="from `next` of the page before")
