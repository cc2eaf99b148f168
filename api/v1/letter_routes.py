"""List the letters that came to the desk, and decide about those that wait."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal, Self

from django.http import HttpResponse
from ninja import Path, Query
from pydantic import Field

from api.edge import answers
from api.edge.answers import ApiInput, ApiModel, ApiQuery
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.file_routes import FileAddress
from api.v1.ticket_schemas import Moment
from portal.dynamo import paging
from portal.errors import NotFound
from portal.objects.object_store import ObjectStore
from portal.web.access import costs
from portal.web.heavy_work import heavy
from tenants.api_keys.scopes import Scope
from tickets.attachments import downloads
from tickets.letters import deciding, ledger, stored
from tickets.letters.stored import LedgerRow, LetterItem, WaitingRow

router: Final = ApiRouter()

_LETTER: Final[dict[str, Any]] = {
    "id": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c",
    "received_at": "2026-11-20T09:30:00.000000Z",
    "state": "waiting",
    "reason": "It was found to be spam.",
    "sender": "ada@example.org",
    "subject": "My parcel",
    "size": 4821,
    "ticket": None,
}
_IN_FULL: Final[dict[str, Any]] = {
    **_LETTER,
    "sent_by": "bounces@example.org",
    "sent_to": ["acme@desk.example"],
    "checks": {"spf": "PASS", "dkim": "PASS", "dmarc": "PASS", "spam": "FAIL", "virus": "PASS"},
}
LetterId = Annotated[str, Path(pattern="^[0-9a-f]{48}$")]


class LetterInList(ApiModel, json_schema_extra={"example": _LETTER}):
    """A letter, and what became of it."""

    id: str
    received_at: Moment
    state: Literal["filed", "automatic", "refused", "waiting", "held", "discarded"] = Field(
        description="refused, waiting and held ones can be filed or discarded, as far as they are listed as waiting"
    )
    reason: str | None = Field(description="why it was not filed")
    sender: str | None
    subject: str | None
    size: int = Field(description="in bytes")
    ticket: int | None = Field(description="number of the ticket that has it")

    @classmethod
    def of(cls, row: LedgerRow | WaitingRow | LetterItem, **more: Any) -> Self:
        told = {name: getattr(row, name) for name in ("received_at", "state", "size")}
        found = {name: getattr(row, name) or None for name in ("reason", "sender", "subject")}
        ticket = int(row.number) or None
        return cls.model_validate({"id": stored.digest_of(row.pk), "ticket": ticket, **told, **found, **more})


class LetterInFull(LetterInList, json_schema_extra={"example": _IN_FULL}):
    """A letter with its envelope."""

    sent_by: str | None = Field(description="the sender of the envelope")
    sent_to: list[str] = Field(description="addresses of this desk that it was delivered to")
    checks: dict[str, str] = Field(description="what the receiving mail server found: PASS, FAIL, GRAY and the like")

    @classmethod
    def whole(cls, item: LetterItem) -> Self:
        return cls.of(item, sent_by=item.sent_by or None, sent_to=list(item.sent_to), checks=json.loads(item.verdicts))


class LetterPage(ApiModel, json_schema_extra={"example": {"data": [_LETTER], "next": None}}):
    """A page of letters, the newest first."""

    data: list[LetterInList]
    next: str | None = Field(description="the address of the next page")


class LetterQuery(ApiQuery):
    """Which letters."""

    waiting: bool = Field(False, description="only those that need a decision")
    after: str | None = Field(None, max_length=2000, description="from `next` of the page before")
    limit: int = Field(50, ge=1, le=100)


class LetterDecision(ApiInput, json_schema_extra={"example": {"state": "filed"}}):
    """The state that a letter that waits is to have."""

    state: Literal["filed", "discarded"]


@router.declare("GET", "/letters", scope=Scope.LETTERS_MANAGE, answers={200: LetterPage}, sends={200: ("Link",)})
@costs(query="letters by time, letters that wait", trips=1, reads=10)
def list_letters(request: ApiRequest, query: Query[LetterQuery]) -> HttpResponse:
    """List the letters that came to the desk, the newest first."""
    tenant, named = request.acting, ("letters", query.waiting)
    position = paging.load(query.after, tenant_id=tenant.tenant_id, query=named) if query.after else None
    read = ledger.waiting if query.waiting else ledger.letters
    rows, end = read(tenant.repository, after=position, limit=query.limit)
    more = paging.dump(end, tenant_id=tenant.tenant_id, query=named) if end else None
    return answers.page(LetterPage(data=[LetterInList.of(row) for row in rows], next=answers.next_url(request, more)))


@router.declare("GET", "/letters/{letter_id}", scope=Scope.LETTERS_MANAGE, answers={200: LetterInFull})
@costs(get="letter", trips=1, reads=2)
def read_letter(request: ApiRequest, letter_id: LetterId) -> HttpResponse:
    """Read what is known of a letter."""
    return answers.answer(LetterInFull.whole(ledger.get(request.acting.repository, letter_id)))


@router.declare("GET", "/letters/{letter_id}/original", scope=Scope.LETTERS_MANAGE, answers={200: FileAddress})
@costs(get="letter", trips=1, reads=2)
def find_original(request: ApiRequest, letter_id: LetterId) -> HttpResponse:
    """Find a letter as it came, in the format of RFC 5322."""
    tenant = request.acting
    item = ledger.get(tenant.repository, letter_id)
    if not item.object:
        raise NotFound("This letter was deleted as it came, with the data of a person.")
    key = stored.raw_key(tenant.tenant_id, item.object)
    url = ObjectStore("tenant", tenant.tenant_id).download_url(
        key, name=f"letter-{letter_id[:12]}.eml", seconds=downloads.SECONDS
    )
    return answers.answer(FileAddress(url=url, seconds=downloads.SECONDS))


@router.declare("PUT", "/letters/{letter_id}/state", scope=Scope.LETTERS_MANAGE, answers={200: LetterInFull})
@costs(
    get="address, address of a requester, letter, mail settings, requester, setup",
    write="audit row, counter, letter, outbox row, ticket, waiting letters",
    trips=12,
    reads=15,
    writes=40,
)
def decide_about_letter(request: ApiRequest, letter_id: LetterId, decision: LetterDecision) -> HttpResponse:
    """File a letter that waits, whatever kept it from that, or discard it.

    A letter that waits no more, or still cannot be filed, is refused with the reason.
    """
    decide = _file if decision.state == "filed" else _discard
    return answers.answer(LetterInFull.whole(decide(request, letter_id)))


@heavy  # a hostile letter takes seconds, and hundreds of megabytes
def _file(request: ApiRequest, digest: str) -> LetterItem:
    return deciding.file(request.acting, digest, by=request.caller.actor)


def _discard(request: ApiRequest, digest: str) -> LetterItem:
    return deciding.discard(request.acting, digest, by=request.caller.actor)
