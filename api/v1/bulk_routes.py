"""Change fields of many tickets by a job: those of a list, or those that are named; watch it, cancel it, undo it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Self
from urllib.parse import parse_qsl

from django.http import HttpResponse
from pydantic import Field, Strict, ValidationError, model_validator

from api.edge import answers
from api.edge.answers import ApiInput, ApiModel
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.ticket_schemas import TicketListQuery, TicketNamed
from portal.errors import Invalid
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tickets.bulk_jobs import bulk_requests
from tickets.bulk_jobs.bulk_requests import Job
from tickets.desk.many import TicketEdit
from tickets.ticket.fields import TAGS_LIMIT, Priority, Status

router: Final = ApiRouter()

_ID: Final = "01a216d5756ebddc9d2a"
_JOB: Final[dict[str, Any]] = {
    "id": _ID,
    "state": "running",
    "undoes": None,
    "begun_at": "2026-11-20T09:30:00.000000Z",
    "total": 1240,
    "changed": 450,
    "unchanged": 12,
    "refused": 3,
    "refusals": [{"number": 7, "reason": "is no longer in this list"}],
    "why": None,
}
_Tags = Annotated[list[str], Field(max_length=TAGS_LIMIT)]
JobId = Annotated[str, Field(pattern="^[0-9a-f]{20}$")]


class TicketLeftAlone(ApiModel, json_schema_extra={"example": _JOB["refusals"][0]}):
    """A ticket that was left as it is, and why."""

    number: int
    reason: str


class BulkChangeInFull(ApiModel, json_schema_extra={"example": _JOB}):
    """A change of many tickets, and how far it is."""

    id: str
    state: str = Field(description="running, cancelling, done, cancelled or failed")
    undoes: str | None = Field(description="the id of the change that this one undoes")
    begun_at: str
    total: int = Field(description="0 while the tickets are being listed")
    changed: int
    unchanged: int = Field(description="tickets that had these values already")
    refused: int
    refusals: list[TicketLeftAlone] = Field(description="of the first 900 tickets")
    why: str | None = Field(description="why it failed")

    @classmethod
    def of(cls, request: ApiRequest, job: Job) -> Self:
        """Make it of what is stored, with a read of the outcomes."""
        outcomes = bulk_requests.outcomes(request.tenant, job)
        refusals = [TicketLeftAlone(number=number, reason=why) for one in outcomes for number, why in one.refused]
        told = {"undoes": job.undoes or None, "why": job.why or None}
        return cls.of_attributes(job, id=job.job_id, refusals=refusals, **told)


class BulkEdit(ApiInput, json_schema_extra={"example": {"priority": "low", "add_tags": ["outage"]}}):
    """Fields that are to change; those that are not named stay."""

    status: Annotated[Status, Strict(False)] | None = None
    priority: Annotated[Priority, Strict(False)] | None = None
    resolver: Annotated[str, Field(pattern="^[0-9a-f]{32}$|^none$")] | None = Field(
        None, description="a member, or none"
    )
    group: Annotated[str, Field(pattern="^group_[1-9][0-9]?$|^none$")] | None = Field(
        None, description="one of the desk's groups, or none"
    )
    add_tags: _Tags = Field(default_factory=list)
    remove_tags: _Tags = Field(default_factory=list)

    def edit(self) -> TicketEdit:
        """Return it as the rules take it. Raises Invalid."""
        tags = {name: getattr(self, name) for name in ("add_tags", "remove_tags")}
        values = {name: "" if value == "none" else value for name, value in self if name not in tags}
        return TicketEdit.of(values, **tags)


_ASKED: Final[dict[str, Any]] = {"change": {"priority": "low"}, "listed": "status=open&tag=outage"}


class BulkChangeToAsk(ApiInput, json_schema_extra={"example": _ASKED}):
    """A change of many tickets: of a list, or of those that are named."""

    change: BulkEdit
    listed: Annotated[str, Field(max_length=500)] | None = Field(None, description="the query of `GET /tickets`")
    tickets: Annotated[list[TicketNamed], Field(min_length=1, max_length=bulk_requests.MOST_NAMED)] | None = None

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        if (self.listed is None) == (self.tickets is None):
            raise ValueError("Give either a list or tickets.")
        return self


def _params(listed: str) -> dict[str, str]:
    """Return the parameters of a list as pages have them. Raises Invalid for a text that `GET /tickets` would refuse: a
    parameter that is ignored would change tickets that nobody meant."""
    pairs = parse_qsl(listed, keep_blank_values=True)
    given = dict(pairs)
    if len(pairs) > len(given) or listed.count("&") + bool(listed) != len(pairs):
        raise Invalid("Each parameter of the list stands there once, with its value.", field="listed")
    try:
        query = TicketListQuery.model_validate(given)
        return {"status": query.status, "resolver": query.resolver or "", **query.only.params}
    except ValidationError as error:
        wrong = ".".join(map(str, error.errors()[0]["loc"]))[:100]
        raise Invalid(f"`GET /tickets` takes no such “{wrong}”.", field="listed") from error
    except Invalid as error:
        error.field = "listed"
        raise


@router.declare(
    "POST", "/bulk-changes", scope=Scope.TICKETS_WRITE, answers={202: BulkChangeInFull}, sends={202: ("Location",)}
)
@costs(get="bulk job, bulk part", write="audit row, bulk job, bulk part", trips=7, reads=6, writes=20)
def ask_for_bulk_change(request: ApiRequest, asked: BulkChangeToAsk) -> HttpResponse:
    """Change fields of many tickets, each by itself.

    A job does it in the background. A desk has one at a time, so the same request sent again while it runs is a
    conflict and changes nothing twice.
    """
    which: dict[str, Any] = {"params": _params(asked.listed)} if asked.listed is not None else {}
    if asked.tickets is not None:
        which = {"numbers": {one.number: one.version for one in asked.tickets}}
    by, key = request.caller.actor, request.caller.prefix
    return _begun(request, bulk_requests.ask(request.acting, asked.change.edit(), by=by, key=key, **which))


@router.declare("GET", "/bulk-changes/{job_id}", scope=Scope.TICKETS_READ, answers={200: BulkChangeInFull})
@costs(get="bulk job, bulk part", trips=2, reads=3)
def read_bulk_change(request: ApiRequest, job_id: JobId) -> HttpResponse:
    """Read how far a bulk change is, and why tickets were refused."""
    return answers.answer(BulkChangeInFull.of(request, bulk_requests.find(request.tenant, job_id)))


@router.declare(
    "PUT", "/bulk-changes/{job_id}/cancellation", scope=Scope.TICKETS_WRITE, answers={200: BulkChangeInFull}
)
@costs(get="bulk job, bulk part", write="audit row, bulk job", trips=5, reads=5, writes=15)
def cancel_bulk_change(request: ApiRequest, job_id: JobId) -> HttpResponse:
    """Cancel a bulk change of this key.

    Tickets that it has changed already stay changed.
    """
    bulk_requests.cancel(request.acting, job_id, by=request.caller.actor)
    return answers.answer(BulkChangeInFull.of(request, bulk_requests.find(request.tenant, job_id)))


@router.declare(
    "POST",
    "/bulk-changes/{job_id}/undo",
    scope=Scope.TICKETS_WRITE,
    answers={202: BulkChangeInFull},
    sends={202: ("Location",)},
)
@costs(get="bulk job, bulk part", write="audit row, bulk job", trips=5, reads=5, writes=15)
def undo_bulk_change(request: ApiRequest, job_id: JobId) -> HttpResponse:
    """Undo a whole bulk change of this key, but for tickets that were changed again since.

    Another job does it, which is answered.
    """
    by, key = request.caller.actor, request.caller.prefix
    return _begun(request, bulk_requests.undo(request.acting, job_id, by=by, key=key))


def _begun(request: ApiRequest, job_id: str) -> HttpResponse:
    job = bulk_requests.find(request.tenant, job_id)
    location = f"{request.path.split('/bulk-changes')[0]}/bulk-changes/{job_id}"
    return answers.answer(BulkChangeInFull.of(request, job), status=202, Location=location)
