"""Read what a desk has defined for its tickets: custom fields, kinds and groups."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse
from pydantic import Field

from api.edge import answers
from api.edge.answers import ApiModel
from api.edge.routing import ApiRequest, ApiRouter
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tickets.custom_fields import definitions
from tickets.custom_fields.definitions import REQUIRED
from tickets.ticket.custom_values import FieldType

router: Final = ApiRouter()

_ORDER: Final[dict[str, Any]] = {
    "id": "choice_1",
    "name": "Product",
    "type": "choice",
    "help": "As on the invoice",
    "choices": ["Desk", "Lamp"],
    "kinds": ["kind_1"],
    "required_for": ["kind_1"],
    "archived": False,
}
_QUESTION: Final[dict[str, Any]] = {"id": "kind_1", "name": "Question", "template": "", "archived": False}
_BILLING: Final[dict[str, Any]] = {"id": "group_1", "name": "Billing", "assigns": "turn", "archived": False}


class CustomFieldOut(ApiModel, json_schema_extra={"example": _ORDER}):
    """A field that the desk has defined."""

    id: str = Field(description="the key in the `custom` of a ticket; it begins with the type and stays")
    name: str
    type: FieldType
    help: str
    choices: list[str] = Field(description="of a choice; a ticket may keep one that is no longer among them")
    kinds: list[str] = Field(description="the ids of the kinds whose form asks it; an empty text is for no kind")
    required_for: list[str] = Field(description="those of them whose form needs it; the API does not")
    archived: bool = Field(description="it takes no new values, and tickets keep theirs")


class TicketKindOut(ApiModel, json_schema_extra={"example": _QUESTION}):
    """A kind of tickets that the desk has defined."""

    id: str
    name: str
    template: str = Field(description="the description that its form begins with, in Markdown")
    archived: bool


class GroupOut(ApiModel, json_schema_extra={"example": _BILLING}):
    """A group of agents."""

    id: str
    name: str
    assigns: str = Field(description="hand, turn (round robin) or load (least busy): who gets its new tickets")
    archived: bool = Field(description="it was deleted; resolved tickets may still have it")


_ALL: Final = {"fields": [_ORDER], "kinds": [_QUESTION], "default_kind": "kind_1", "groups": [_BILLING]}


class DefinitionsOut(ApiModel, json_schema_extra={"example": _ALL}):
    """The custom fields, the kinds and the groups of a desk, in its order."""

    fields: list[CustomFieldOut]
    kinds: list[TicketKindOut]
    default_kind: str | None = Field(description="the id of the kind of a new ticket for which none is given")
    groups: list[GroupOut]


@router.declare(
    "GET", "/fields", scope=Scope.TICKETS_READ, answers={200: DefinitionsOut, 304: None}, headers=answers.KNOWN
)
@costs(get="setup", trips=1, reads=1)
def read_definitions(request: ApiRequest) -> HttpResponse:
    """Read the custom fields and the kinds of tickets that the desk has defined, and its groups."""
    defined = definitions.of(request.tenant)
    fields = [
        CustomFieldOut(
            id=one.id,
            name=one.name,
            type=one.type,
            help=one.help,
            choices=list(one.choices),
            kinds=[kind for kind, use in one.forms.items() if use],
            required_for=[kind for kind, use in one.forms.items() if use == REQUIRED],
            archived=one.is_archived,
        )
        for one in defined.fields
    ]
    kinds = [
        TicketKindOut(id=one.id, name=one.name, template=one.template, archived=one.is_archived)
        for one in defined.kinds
    ]
    groups = [
        GroupOut(id=one.id, name=one.name, assigns=one.assigns, archived=one.is_archived) for one in defined.groups
    ]
    return answers.tagged(
        request,
        DefinitionsOut(fields=fields, kinds=kinds, default_kind=defined.default_kind or None, groups=groups),
    )
