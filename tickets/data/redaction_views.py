"""Let admins take words out of a ticket and of everything that is stored of its texts."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.web import locales
from portal.web.access import get_or_post, member
from portal.web.costs import costs
from portal.web.heavy_work import heavy
from tenants.tenancy.redaction import MARK
from tenants.tenancy.request import TenantRequest, actor_of
from tenants.tenancy.roles import Role
from tickets.data import redacting
from tickets.data.forms import RedactionForm
from tickets.desk import changing


@member(Role.ADMIN)
@costs(on="GET", get="ticket", trips=1, reads=1)
@costs(
    on="POST",
    get="API answer, audit chain, export, letter, outbox row, ticket",
    query="API answers by time, delivery, export part, outbox rows by tenant, ticket, webhook",
    write="API answer, audit chain, audit row, export, export part, file, letter, outbox row, ticket",
    trips=20,
    reads=30,
    writes=200,
)
@get_or_post
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
