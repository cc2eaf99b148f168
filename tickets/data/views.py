"""Let owners look for a person, hand out what the desk holds of them, and erase them.

A search or an erasure takes STEP tickets for each request. Intermediate results go to the page and back, signed for
this owner in this desk. The page continues by itself, or by its button without JavaScript.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from django.contrib import messages
from django.core import signing
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from portal import clock, spreadsheet
from portal.errors import Conflict, Invalid
from portal.web import locales
from portal.web.access import counted, member, on_get, on_post, open_while_closing
from portal.web.heavy_work import heavy
from tenants.audit_trail import recording
from tenants.audit_trail.recording import AuditAction, AuditEntry
from tenants.tenancy.context import Role
from tenants.tenancy.redaction import MARK
from tenants.tenancy.request import TenantRequest, actor_of
from tickets.custom_fields import definitions
from tickets.data import desk_person, exporting, person_erasing, person_finding, presenters, redacting
from tickets.data.forms import ErasureForm, PersonForm, RedactionForm
from tickets.data.person_erasing import Erasure
from tickets.data.person_finding import PersonFound
from tickets.desk import changing
from tickets.desk.queue_presenters import QueueAddress

_State = TypeVar("_State")

STEP = 200  # tickets of one request
_SALT: Final = "tickets.privacy"
_GOOD_FOR: Final = 3600  # seconds that a search or an erasure can be gone on with
_PAGE: Final = "tickets/person.html"


@open_while_closing
@member(Role.OWNER)
@on_get(query="audit rows by object", trips=1, reads=8)
@on_post(
    get="address, address of a requester, aggregate, counter, mail settings, requester",
    query="API key, article, audit row, audit rows by object, auditor, group turns, help centre, invitation, letters "
    "by time, member, notice, ready answer, rule, saved views, ticket, webhook",
    trips=25,
    reads=30,
    per="ticket",
    each=(1, 150, 0),
    room="a ticket of a megabyte",
)
@heavy
def person_page(request: TenantRequest) -> HttpResponse:
    """Ask for an address, and look through the next tickets for it. Costs the audit trail at first, and then one Query
    for each ticket."""
    if request.method != "POST":
        return _asking(request, PersonForm())
    tenant = request.tenant
    if "so_far" in request.POST:
        found = _told(request, "found", PersonFound.load)
    else:
        form = PersonForm(request.POST)
        if not form.is_valid():
            return _asking(request, form, status=422)
        found = person_finding.begin(tenant, desk_person.person_of(tenant, form.cleaned_data["address"]))
    counted(request, min(STEP, found.last - found.reached))
    for _step in person_finding.go_on(tenant, found, most=STEP):
        pass
    return _shown(request, found, ErasureForm(address=found.person.address))


@open_while_closing
@member(Role.OWNER)
@on_post(write="audit row", trips=4, reads=2, writes=10)
@heavy
def export_person(request: TenantRequest) -> HttpResponseBase:
    """Send what the desk holds of somebody while it is read. Recorded in the audit trail, without the address."""
    tenant = request.tenant
    found = _told(request, "found", PersonFound.load)
    if not found.is_whole:
        raise Invalid(gettext("The search has not ended. Nothing was exported."))
    found.refuse_unknown()
    by = actor_of(request)
    recording.record(AuditEntry(tenant.tenant_id, AuditAction.EXPORT_MADE, by, "export", "person", "a person's data"))
    name = f"person-{tenant.slug}-{clock.now():%Y%m%d-%H%M%S}.json"
    return StreamingHttpResponse(
        person_finding.pieces(tenant, found.person),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@member(Role.OWNER)
@on_post(
    get="aggregate, counter, file, mail settings, member, requester, ticket",
    query="API key, auditor, group turns, help centre, invitation, letters by time, member, notice, ready answer, "
    "rule, saved views, ticket, webhook",
    write="address of a requester, audit row, auditor, file, invitation, invitation link, invited, membership, "
    "requester, tenant, ticket, unreached invitation",
    trips=25,
    reads=40,
    writes=60,
    per="ticket",
    each=(4, 150, 400),
    room="a ticket of a megabyte",
)
@heavy
def erase_person(request: TenantRequest) -> HttpResponse:
    """Erase somebody, once the address is typed again, in the next tickets; the record comes with the last of them."""
    tenant = request.tenant
    if "erasing" in request.POST:
        erasure = _told(request, "erasing", Erasure.load)
    else:
        found = _told(request, "found", PersonFound.load)
        form = ErasureForm(request.POST, address=found.person.address)
        try:
            if not (found.is_whole and form.is_valid()):
                return _shown(request, found, form, status=422)
            erasure = person_erasing.begin(
                tenant, found, texts=form.cleaned_data["texts"], files=form.cleaned_data["sent_files"]
            )
        except (Conflict, Invalid) as error:
            form.add_error(None, error.message)
            return _shown(request, found, form, status=422)
    counted(request, min(STEP, erasure.last - erasure.reached))
    person_erasing.go_on(tenant, erasure, most=STEP)
    if not erasure.is_whole:
        page = presenters.erasing(erasure) | {"so_far": _signed(request, "erasing", erasure.dumped())}
        return render(request, _PAGE, page)
    person_erasing.end(tenant, erasure, by=actor_of(request))
    said = gettext(
        "The person is erased, and is %(name)s from now on. Names that people wrote in texts are still there."
    )
    messages.success(request, f"{said % {'name': erasure.name}} {erasure.shortening}".rstrip())
    to = reverse("tickets:person")
    return HttpResponseClientRedirect(to) if "HX-Request" in request.headers else redirect(to)


def _asking(request: TenantRequest, form: PersonForm, *, status: int = 200) -> HttpResponse:
    page = {"form": form, "erasures": presenters.erasures(request.tenant)}
    return render(request, _PAGE, page, status=status)


def _shown(request: TenantRequest, found: PersonFound, form: ErasureForm, *, status: int = 200) -> HttpResponse:
    page = presenters.found(found) | {"form": form, "so_far": _signed(request, "found", found.dumped())}
    return render(request, _PAGE, page, status=status)


def _signed(request: TenantRequest, kind: str, state: dict[str, Any]) -> str:
    told = {"for": [kind, request.tenant.tenant_id, request.tenant.user_id], "state": state}
    return signing.dumps(told, salt=_SALT, compress=True)


def _told(request: TenantRequest, kind: str, load: Callable[[dict[str, Any]], _State]) -> _State:
    """Return what `_signed` has made for this owner and desk. Raises Invalid for anything else, and what is too old, or
    of another version of the portal."""
    try:
        told = signing.loads(request.POST.get("so_far", ""), salt=_SALT, max_age=_GOOD_FOR)
        if told["for"] == [kind, request.tenant.tenant_id, request.tenant.user_id]:
            return load(told["state"])
    except (signing.BadSignature, LookupError, TypeError, ValueError):
        pass
    raise Invalid(gettext("This search is too old to go on with. Search for the person again."))


# --- tables ---


@open_while_closing
@member(Role.VIEWER)
@on_post(write="audit row", trips=4, reads=2, writes=10)
@heavy
def export(request: TenantRequest) -> HttpResponseBase:
    """Send all tickets of a list as CSV while they are read. The export is recorded in the audit trail."""
    tenant = request.tenant
    address = QueueAddress.of(request.POST.dict())
    chosen = {name: value for name, value in address.params.items() if value}
    recording.record(
        AuditEntry(
            tenant.tenant_id, AuditAction.EXPORT_MADE, actor_of(request), "export", "tickets", "tickets", after=chosen
        )
    )
    defined = definitions.of(tenant)
    rows = exporting.everything(tenant, statuses=address.statuses, resolver=address.resolver(tenant), only=address.only)
    name = f"tickets-{tenant.slug}-{clock.now():%Y%m%d-%H%M%S}.csv"
    return StreamingHttpResponse(
        spreadsheet.lines(exporting.columns(defined), map(partial(exporting.cells, defined), rows)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@member(Role.ADMIN)
@on_get(get="ticket", trips=1, reads=1)
@on_post(
    get="API answer, export, letter, outbox row, ticket",
    query="API answers by time, delivery, export part, outbox rows by tenant, ticket, webhook",
    write="API answer, audit row, export, export part, file, letter, outbox row, ticket",
    trips=20,
    reads=30,
    writes=200,
)
@heavy
def redact(request: TenantRequest, number: int) -> HttpResponse:
    """Ask for words, show where they are in the ticket, and take them out once that is confirmed.

    A selection of the ticket's page comes as `selected`, in a POST: addresses are logged, and words must not be.
    """
    found, status = None, 200
    if "selected" in request.POST:
        form = RedactionForm(initial={"words": request.POST["selected"]})
    else:
        form = RedactionForm(request.POST or None)
    if form.is_bound and form.is_valid():
        words = form.cleaned_data["words"]
        if "confirmed" in request.POST:
            done = redacting.redact(request.tenant, number, words, by=actor_of(request))
            messages.success(
                request, _("The words were taken out: %(where)s.") % {"where": done.counted or _("they were nowhere")}
            )
            if done.split:
                others = ", ".join(f"#{other}" for other in done.split)
                messages.warning(
                    request, _("They are still in %(others)s, where a comment was split off.") % {"others": others}
                )
            return redirect("tickets:ticket", number)
        found = redacting.find(request.tenant, number, words)
    else:
        changing.read(request.tenant, number, consistent=False)  # raises NotFound
        status = 422 if form.is_bound else 200
    context = {
        "number": number,
        "form": form,
        "mark": MARK,
        "found": found and {"count": _places(sum(found.places.values())), "words": found.counted, "split": found.split},
    }
    return render(request, "tickets/redact.html", context, status=status)


def _places(count: int) -> str:
    return ngettext("%(num)s place", "%(num)s places", count) % {"num": locales.current().number(count)}
