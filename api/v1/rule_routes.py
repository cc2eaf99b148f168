"""Read and change the rules of the desk, list what they did, and undo one run."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, Self

from django.http import HttpResponse
from ninja import Path, Query
from pydantic import ConfigDict, Field, Strict

from api.edge import answers, idempotency
from api.edge.answers import ApiChange, ApiInput, ApiModel, ApiQuery
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.ticket_schemas import Moment
from portal.dynamo.client import alongside
from portal.dynamo.transaction import Companion
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tickets.rules import definition, rule_changes, runs
from tickets.rules.definition import By, On
from tickets.rules.rule_changes import MAIL_LIMIT, NAME_LIMIT
from tickets.rules.stored import RuleItem, RunItem
from tickets.ticket.fields import TAGS_LIMIT

router: Final = ApiRouter()

_SCOPE: Final = Scope.RULES_MANAGE
_LEFT: Final[Any] = None  # the value of a field that a change does not name
_PARTS: Final[dict[str, Any]] = {
    "when": {"event": "created", "by": "outside", "what": ""},
    "if": {"priority": "urgent", "tag": "printer"},
    "then": {
        "set": {"status": "pending"},
        "add_tags": ["now"],
        "remove_tags": [],
        "answer": "",
        "webhook": "",
        "mail": {"to": "assignee", "text": "Please look at {ticket}."},
    },
}
_RULE: Final[dict[str, Any]] = {
    "id": "rule_019e0c1d2e3a4b4c5d8e",
    "name": "Urgent printers",
    "on": True,
    "version": 3,
    **_PARTS,
    "created_at": "2026-11-20T09:30:00.000000Z",
    "changed_at": "2026-11-20T09:30:00.000000Z",
}
_RUN: Final[dict[str, Any]] = {
    "id": "20261120093000000000-5b1f0c2d3e4a4b5c8d9e0f1a2b3c4d5e-7",
    "version": 3,
    "ticket": 7,
    "event": "created",
    "at": "2026-11-20T09:30:00.000000Z",
    "entry": "5d1c2b3a4f5e",
    "refused": None,
    "undone_at": None,
}
RuleId = Annotated[str, Path(pattern="^rule_[0-9a-f]{20}$")]
RunId = Annotated[str, Path(pattern="^[0-9]{20}-[0-9a-f]{32}-[1-9][0-9]{0,14}$")]
_BY_ALIAS: Final = ConfigDict(serialize_by_alias=True)


class RuleWhen(ApiInput):
    """The events for which a rule is."""

    event: Annotated[On, Strict(False)]
    by: Annotated[By, Strict(False)] = Field(By.ANYBODY, description="who caused it; a rule is on neither side")
    what: str = Field("", max_length=60, description="the changed field, or due, due_soon or breached; any if empty")


class RuleMailTo(ApiInput):
    """A mail to a member."""

    to: str = Field(max_length=40, description="a member's id, or assignee")
    text: str = Field(min_length=1, max_length=MAIL_LIMIT, description="plain text with placeholders such as {ticket}")


class RuleThen(ApiInput):
    """The actions of a rule, at least one."""

    set: dict[str, Any] = Field(
        default_factory=dict, max_length=20, description="fields with the values that they get, `custom` by ids"
    )
    add_tags: list[str] = Field(default_factory=list, max_length=TAGS_LIMIT)
    remove_tags: list[str] = Field(default_factory=list, max_length=TAGS_LIMIT)
    answer: str = Field("", max_length=40, description="the id of a shared ready answer, which becomes a comment")
    webhook: str = Field("", max_length=40, description="the id of an endpoint, which gets ticket.rule_ran")
    mail: RuleMailTo | None = None


_Name = Annotated[str, Field(min_length=1, max_length=NAME_LIMIT)]
_Only = Annotated[
    dict[str, Annotated[str, Field(max_length=200)]],
    Field(alias="if", max_length=30, description="the parameters of a list of tickets, as `GET /tickets` takes them"),
]


class RuleToAdd(ApiInput, json_schema_extra={"example": {"name": "Urgent printers", **_PARTS}}):
    """A new rule. It runs once it is on."""

    name: _Name
    on: bool = False
    when: RuleWhen
    only: _Only = Field(default_factory=dict, alias="if")
    then: RuleThen


class RuleToChange(ApiChange, json_schema_extra={"minProperties": 1, "example": {"on": False}}):
    """The parts that are to change, at least one; each as a whole. The others stay."""

    name: _Name = _LEFT
    on: bool = _LEFT
    when: RuleWhen = _LEFT
    only: _Only = Field(_LEFT, alias="if")
    then: RuleThen = _LEFT


class RuleOut(ApiModel, json_schema_extra={"example": _RULE}):
    """A rule as it is."""

    model_config = _BY_ALIAS

    id: str
    name: str
    on: bool
    version: int = Field(description="grows with each change of all but `on`")
    when: RuleWhen
    only: dict[str, str] = Field(alias="if")
    then: RuleThen
    created_at: Moment
    changed_at: Moment

    @classmethod
    def of(cls, item: RuleItem) -> Self:
        named = {"id": item.rule_id, "name": item.name, "on": bool(item.is_on), "version": int(item.version)}
        at = {"created_at": item.created_at, "changed_at": item.changed_at}
        return cls.model_validate({**named, **definition.shown(rule_changes.of_item(item)), **at})


class RuleList(ApiModel, json_schema_extra={"example": {"data": [_RULE]}}):
    """All rules of the desk, in the order in which they run."""

    data: list[RuleOut]


class RunOut(ApiModel, json_schema_extra={"example": _RUN}):
    """A run: a rule has done something for one event with one ticket."""

    id: str
    version: int = Field(description="of the rule")
    ticket: int
    event: str
    at: Moment
    entry: str | None = Field(description="the id of the entry of the history that tells of its changes")
    refused: str | None = Field(description="why it could do nothing")
    undone_at: Moment | None

    @classmethod
    def of(cls, item: RunItem) -> Self:
        told = {"entry": item.entry or None, "refused": item.why or None}
        return cls.of_attributes(item, id=item.run_id, ticket=item.number, **told)


class RunPage(ApiModel, json_schema_extra={"example": {"data": [_RUN], "next": None}}):
    """A page of the runs of a rule, the newest first."""

    data: list[RunOut]
    next: str | None = Field(description="the address of the next page")


class RunQuery(ApiQuery):
    """Which runs."""

    after: str = Field("", max_length=2000, description="from `next` of the page before")
    limit: int = Field(50, ge=1, le=100)


def _given(sent: RuleToAdd | RuleToChange) -> dict[str, Any]:
    """Return the parts that are named, as `definition.read` takes them."""
    named: dict[str, Any] = sent.model_dump(mode="json", by_alias=True, include={"when", "only", "then"})
    return {name: part for name, part in named.items() if part is not None}


@router.declare("GET", "/rules", scope=_SCOPE, answers={200: RuleList})
@costs(query="rule", trips=1, reads=2)
def list_rules(request: ApiRequest) -> HttpResponse:
    """List all rules of the desk, in the order in which they run."""
    return answers.answer(RuleList(data=[RuleOut.of(item) for item in rule_changes.listed(request.acting)]))


@router.declare(
    "POST",
    "/rules",
    scope=_SCOPE,
    answers={201: RuleOut},
    headers=idempotency.ONCE,
    sends={201: ("Location",)},
)
@costs(query="rule", write="API answer in the pool, audit row, rule, tenant", trips=3, reads=5, writes=25)
def add_rule(request: ApiRequest, rule: RuleToAdd) -> HttpResponse:
    """Add a rule."""

    def write(companion: Companion[RuleItem]) -> None:
        by = request.caller.actor
        rule_changes.create(request.acting, rule.name, _given(rule), is_on=rule.on, by=by, companion=companion)

    def render(made: RuleItem) -> HttpResponse:
        return answers.answer(RuleOut.of(made), status=201, Location=f"{request.path}/{made.rule_id}")

    return idempotency.post(request, write, render, is_content=False)


@router.declare("GET", "/rules/{rule_id}", scope=_SCOPE, answers={200: RuleOut})
@costs(get="rule", trips=1, reads=2)
def read_rule(request: ApiRequest, rule_id: RuleId) -> HttpResponse:
    """Read a rule."""
    return answers.answer(RuleOut.of(rule_changes.find(request.acting, rule_id)))


@router.declare("PATCH", "/rules/{rule_id}", scope=_SCOPE, answers={200: RuleOut})
@costs(get="rule", query="rule", write="audit row, rule, tenant", trips=4, reads=6, writes=25)
def change_rule(request: ApiRequest, rule_id: RuleId, rule: RuleToChange) -> HttpResponse:
    """Change parts of a rule, or switch it on or off."""
    how: dict[str, Any] = {"name": rule.name, "is_on": rule.on, "by": request.caller.actor}
    return answers.answer(RuleOut.of(rule_changes.change(request.acting, rule_id, _given(rule), **how)))


@router.declare("DELETE", "/rules/{rule_id}", scope=_SCOPE, answers={204: None})
@costs(query="rule", write="audit row, rule, tenant", trips=3, reads=5, writes=20)
def delete_rule(request: ApiRequest, rule_id: RuleId) -> HttpResponse:
    """Delete a rule. Its runs stay, and tickets keep what they changed."""
    rule_changes.delete(request.acting, rule_id, by=request.caller.actor)
    return HttpResponse(status=204)


@router.declare("GET", "/rules/{rule_id}/runs", scope=_SCOPE, answers={200: RunPage}, sends={200: ("Link",)})
@costs(get="rule", query="rule run", trips=1, reads=10)
def list_runs(request: ApiRequest, rule_id: RuleId, query: Query[RunQuery]) -> HttpResponse:
    """List the runs of a rule in the last 30 days, also of one that was deleted."""
    tenant = request.acting
    (found, cursor), _ = alongside(
        partial(runs.listed, tenant, rule_id, after=query.after, limit=query.limit),
        aside=partial(rule_changes.find_version, tenant, rule_id, 1),
    )
    url = answers.next_url(request, cursor or None)
    return answers.page(RunPage(data=[RunOut.of(item) for item in found], next=url))


@router.declare("PUT", "/rules/{rule_id}/runs/{run_id}/undo", scope=_SCOPE, answers={200: RunOut})
@costs(get="rule run, ticket", write="rule run, ticket", trips=4, reads=5, writes=20)
def undo_run(request: ApiRequest, rule_id: RuleId, run_id: RunId) -> HttpResponse:
    """Take back the changes of one run. Comments, mails and webhooks that have left stay."""
    run = runs.find(request.acting, rule_id, run_id)
    if not run.undone_at:
        runs.undo(request.acting, run)
    return answers.answer(RunOut.of(run))
