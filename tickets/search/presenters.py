"""Turn what a search finds into what its page and the box in the header show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest
from typing import Any, Final, Self
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.html import escape
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext
from markupsafe import Markup

from portal import clock
from portal.errors import Invalid
from portal.web import locales
from tenants.tenancy.context import TenantContext
from tickets.custom_fields import definitions
from tickets.custom_fields.definitions import Definitions, operator_word
from tickets.dashboards.dashboard import Freshness
from tickets.desk import filters, queue_presenters, timelines
from tickets.desk.queue_presenters import QueueAddress, chips
from tickets.desk.ticket_presenters import entry_url, listed, queue_url
from tickets.search import search_query
from tickets.search.index.fragments import NOTE
from tickets.search.results import Found, Hit, Piece, Suggestions, Where
from tickets.search.search_query import ME, NOBODY, Filters, OnlyFilters, SearchQuery
from tickets.search.ticket_search import NOTHING_INDEXED
from tickets.ticket.custom_values import FieldType
from tickets.ticket.fields import DEFINED, Status
from tickets.ticket.stored import ActivityItem

TEXT_KEPT: Final = 3_000  # characters in an address: more than are searched for, and each link of a page holds them
NEWEST: Final = "newest"  # numbers first, as an address says it; otherwise what fits best is
_TAGS: Final = 3  # of a hit, that there is room for
_WHO: Final = {ME: "me", NOBODY: "none"}  # words of the queue for those of a query
_EXAMPLES: Final = {
    FieldType.TEXT: gettext_noop('"A value"'),
    FieldType.NUMBER: "12",
    FieldType.CHOICE: gettext_noop('"A choice"'),
    FieldType.DATE: "2026-01-31",
    FieldType.CHECKBOX: "yes",
}
_WHERE: Final = {
    Where.TITLE: "",
    Where.DESCRIPTION: gettext_noop("Description"),
    Where.COMMENT: gettext_noop("Comment"),
    Where.NOTE: gettext_noop("Internal note"),
    Where.TAGS: gettext_noop("Tags"),
    Where.CUSTOM: gettext_noop("Custom fields"),
    Where.REQUESTER: gettext_noop("Requester"),
}


@dataclass(frozen=True)
class SearchAddress(QueueAddress):
    """Hold what an address of the search asks for: a text, an order, and the filters that the queue has too."""

    text: str
    order: str

    @classmethod
    def of(cls, params: Mapping[str, str]) -> Self:
        """Raise Invalid for what means nothing; unknown parameters and empty ones ask nothing."""
        listing = QueueAddress.of({**params, "status": params.get("status") or "any", "sort": ""})
        order = NEWEST if params.get("order") == NEWEST else ""
        text = params.get("q", "").strip()[:TEXT_KEPT]
        return cls(listing.status, listing.who, listing.name, listing.only, "", text, order)

    @property
    def params(self) -> dict[str, str]:
        filters = super().params
        return {"q": self.text, "order": self.order, **filters, "status": "" if self.status == "any" else self.status}

    @property
    def is_narrowed(self) -> bool:
        """Tell whether only a part of the desk's tickets is searched."""
        return self.status != "any" or bool(self.who or self.only)

    def within(self, tenant: TenantContext) -> Filters | None:
        """Return the filters as the search takes them, None where all tickets are searched."""
        if not self.is_narrowed:
            return None
        return Filters(None if self.status == "any" else self.statuses, self.resolver(tenant), self.only)

    def url(self, **changes: str) -> str:
        """Return the address of the same search with other values of these parameters; "" drops one."""
        if changes.get("status") == "any":
            changes["status"] = ""
        query = urlencode({name: value for name, value in (self.params | changes).items() if value})
        return reverse("tickets:search") + (f"?{query}" if query else "")


def search_url(text: str) -> str:
    return f"{reverse('tickets:search')}?{urlencode({'q': text})}"


def results_page(
    tenant: TenantContext, address: SearchAddress, found: Found, freshness: Freshness, *, after: str, meant: str = ""
) -> dict[str, Any]:
    """Return the page of what was found. `after` is the cursor that it begins behind, "" for the first page; `meant` a
    text that finds something where this one does not."""
    blank = None if found.hits else _nothing(tenant, address, found, after)
    return _context(
        tenant,
        address,
        blank,
        hits=[_hit(tenant, hit) for hit in found.hits],
        nearly=[_hit(tenant, hit) for hit in found.nearly],
        explanations=[_(sentence) for sentence in found.explanations if sentence != NOTHING_INDEXED],
        late=freshness if freshness.state in ("behind", "stopped") else None,
        summary=blank["title"] if blank else _summary(found, after),
        further_url=address.url(after=found.further) if found.further else None,
        first_url=address.url() if after else None,
        meant={"text": meant, "url": address.url(q=meant)} if meant else None,
    )


def waiting_page(tenant: TenantContext, address: SearchAddress) -> dict[str, Any]:
    title = _("Search in this list") if address.is_narrowed else _("Search this desk")
    context = _context(
        tenant, address, _blank(title, _("Type what you are looking for into the box above."), icon="search")
    )
    context["search"]["is_waiting"] = True
    return context


def refused_page(tenant: TenantContext, params: Mapping[str, str], problem: Invalid) -> dict[str, Any]:
    """Return the page for what cannot be searched for: why, and what was typed. `problem.field` is "q", a filter's
    name, or None for the address itself."""
    address = SearchAddress.of_what_is_understood(params)
    listing = _listing(problem.query, address) if isinstance(problem, OnlyFilters) else None
    if listing:
        ways = [(listing, _("Show these tickets in the queue"))]
        return _context(tenant, address, _blank(_("Add a word to search for"), "", *ways))
    if problem.field is None:
        return _context(tenant, address, problem=problem.message, first_url=address.url())
    if problem.field == "q":
        return _context(tenant, address, problem=problem.message)
    context = _context(tenant, address, _blank(problem.message, "", (address.url(), _("Search without this filter"))))
    context["filter_form"] = _filter_form(tenant, address, params, problem)
    return context


def busy_page(tenant: TenantContext, address: SearchAddress, message: str, *, here: str) -> dict[str, Any]:
    """Return the page of a search that has to wait: others of the desk are under way. `here` is its address."""
    text = _("%(problem)s What you typed is still in the box.") % {"problem": message}
    blank = _blank(_("Too many searches at once"), text, (here, _("Try again")), icon="warning")
    return _context(tenant, address, blank, is_busy=True)


def tidied(params: Mapping[str, str]) -> str | None:
    """Return the address that the form of filters means, None where the parameters are not the form's. Raises
    Invalid."""
    meant = queue_presenters.as_meant(params)
    return None if meant is None else SearchAddress.of(meant).url()


def with_its_tabs(tenant: TenantContext, address: SearchAddress) -> str | None:
    """Return the address with the tabs that the filters in its text ask for, None where they do not contradict them."""
    try:
        query, _ = search_query.parse(address.text, defined=definitions.of(tenant))
    except OnlyFilters as problem:
        query = problem.query
    except Invalid:  # which the search itself explains
        return None
    changes = {}
    if query.statuses and not set(query.statuses) & set(address.statuses):
        changes["status"] = _status_word(query) or "any"
    asked = _WHO.get(query.assignee, "")
    if asked and address.who in ("me", "none") and asked != address.who:
        changes["resolver"] = asked
    return address.url(**changes) if changes else None


def suggestions(tenant: TenantContext, suggested: Suggestions) -> dict[str, Any]:
    """Return what the list below the box offers: tickets, searches for tags, the lists of people."""
    people = [{"name": p.name, "url": queue_url(status="any", resolver=p.id, name=p.name)} for p in suggested.people]
    return {
        "tickets": [listed(tenant, item) for item in suggested.tickets],
        "tags": [_tag(tag, "") for tag in suggested.tags],
        "people": people,
    }


def hit_text(hit: Hit) -> dict[str, Any]:
    """Return the texts of a hit, with what was sought marked: its title, a stretch of its text, where that stands."""
    return {
        "title": _marked(hit.title),
        "snippet": _marked(hit.snippet),
        "where": _(where) if (where := _WHERE[hit.where]) else "",
    }


def _context(
    tenant: TenantContext, address: SearchAddress, blank: dict[str, Any] | None = None, **results: Any
) -> dict[str, Any]:
    return {
        "search": {"text": address.text, "is_waiting": False},
        "status_tabs": queue_presenters.status_tabs(address),
        "who_tabs": queue_presenters.who_tabs(address),
        "chips": chips(tenant, address),
        "chips_note": queue_presenters.note(tenant, address.only),
        "without_url": address.url(**dict.fromkeys(address.only.params, "")),
        "filter_form": _filter_form(tenant, address),
        "own_operators": _own_operators(definitions.of(tenant)),
        "results": {
            # The box in the header sends these along.
            "kept": [(name, value) for name, value in address.params.items() if value and name != "q"],
            "here": address.url(q="") if address.is_narrowed else None,
            "orders": [
                {"label": label, "url": address.url(order=order), "current": order == address.order}
                for label, order in ((_("Best match"), ""), (_("Highest number first"), NEWEST))
            ],
            "summary": "",
            "is_busy": False,
            "hits": [],
            "nearly": [],
            "explanations": [],
            **dict.fromkeys(("late", "problem", "meant", "further_url", "first_url")),
            "blank": blank,
            **results,
        },
    }


def _own_operators(defined: Definitions) -> list[dict[str, Any]]:
    """Return what the help of the search says of the desk's kinds, groups and custom fields."""
    named = [(of.name, operator_word(one.name), "", False) for of in DEFINED for one in defined.in_use_of(of)[:1]]
    named += [(one.word, _(_EXAMPLES[one.type]), one.name, one.type.has_order) for one in defined.in_use]
    return [{"word": w, "example": e, "name": name, "has_range": r} for w, e, name, r in named]


def _filter_form(
    tenant: TenantContext,
    address: SearchAddress,
    typed: Mapping[str, str] | None = None,
    problem: Invalid | None = None,
) -> dict[str, Any]:
    form = queue_presenters.form(tenant, address, typed, problem)
    own = [(name, value) for name in ("q", "order") if (value := address.params[name])]
    place = {"url": reverse("tickets:search"), "place": "#results", "home": "results-title"}
    return form | place | {"hidden": [*own, *form["hidden"]]}


def _hit(tenant: TenantContext, hit: Hit) -> dict[str, Any]:
    ticket, place = listed(tenant, hit.summary), _place(tenant, hit)
    return {
        **hit_text(hit),
        **({"where": _written_by(hit.entry)} if hit.entry else {}),
        "at": clock.parse(hit.entry.at) if hit.entry else None,
        "place": place,
        "url": ticket.url if hit.is_in_head or not place else place,
        "ticket": ticket,
        "is_note": hit.where is Where.NOTE,
        "merged_into": int(hit.summary.merged_into or 0),
        "tags": [_tag(*one) for one in zip_longest(ticket.tags[:_TAGS], ticket.hues[:_TAGS], fillvalue="")],
    }


def _place(tenant: TenantContext, hit: Hit) -> str | None:
    """Return the address at which the ticket's page shows the words of the snippet, None where they are at its top."""
    number = int(hit.summary.number)
    if hit.entry:
        return entry_url(number, hit.entry.sk)
    if hit.unread:
        cursor = timelines.before(tenant, number, hit.unread)
        return f"{reverse('tickets:ticket', args=[number])}?{urlencode({'before': cursor})}#activity-title"
    if hit.where is Where.DESCRIPTION and hit.summary.merged_into:  # of the other ticket it is an entry
        return entry_url(number, timelines.opening_key(hit.summary))
    return None


def _written_by(entry: ActivityItem) -> str:
    told = _("Internal note by %(name)s") if entry.kind == NOTE else _("Comment by %(name)s")
    return told % {"name": entry.author_name}


def _marked(pieces: Sequence[Piece]) -> Markup:
    html = (f"<mark>{escape(p.text)}</mark>" if p.is_match else escape(p.text) for p in pieces)
    return Markup("".join(html))  # noqa: S704  # of escaped pieces


def _tag(name: str, hue: str) -> dict[str, str]:
    return {"name": name, "hue": hue, "url": search_url(f"tag:{name}")}


def _summary(found: Found, after: str) -> str:
    count, number = len(found.hits), locales.current().number
    if after:
        told = ngettext("%(num)s more ticket", "%(num)s more tickets", count)
    elif not found.further:
        told = ngettext("%(num)s ticket found", "%(num)s tickets found", count)
    elif found.is_counted and found.about and found.about > count:
        told = _("%(num)s of about %(about)s tickets")
    else:
        told = ngettext(
            "%(num)s ticket so far; %(rest)s more may match", "%(num)s tickets so far; %(rest)s more may match", count
        )
    return told % {"num": number(count), "about": number(found.about or 0), "rest": number(found.rest)}


# --- nothing ---


def _nothing(tenant: TenantContext, address: SearchAddress, found: Found, after: str) -> dict[str, Any]:
    """Say why there is no hit, and the ways on."""
    if NOTHING_INDEXED in found.explanations:
        text = _(
            "Its tickets have not been indexed. What is written from now on is found within seconds, older tickets "
            "once the platform’s operators have indexed them."
        )
        return _blank(_("This desk cannot be searched yet"), text, (reverse("tickets:queue"), _("Open the queue")))
    if found.further:
        rest = locales.current().number(found.rest)
        text = _("%(rest)s more may match.") % {"rest": rest} if found.rest > 1 else _("One more may match.")
        return _blank(_("No match among the tickets looked at so far"), text)
    if after:
        return _blank(_("There are no more tickets that match."), "")
    text = _shortened(address.text)
    if found.nearly:
        return _blank(
            _("No tickets match all of “%(text)s”.") % {"text": text}, _("Those below have some of the words.")
        )
    if not address.is_narrowed:
        return _blank(
            _("No tickets match “%(text)s”.") % {"text": text}, _("Check the spelling, or try fewer or shorter words.")
        )
    ways = [(chip["url"], _("Remove “%(filter)s”") % {"filter": chip["label"]}) for chip in chips(tenant, address)]
    if address.status != "any":
        ways.append((address.url(status=""), _("Search in any status")))
    if address.who:
        ways.append((address.url(resolver="", name=""), _("Search everyone’s tickets")))
    return _blank(_("No tickets in this list match “%(text)s”.") % {"text": text}, "", *ways)


def _listing(query: SearchQuery, address: SearchAddress) -> str | None:
    """Return the address of the queue with the filters of query and page, None where it has no words for them."""
    last = (query.before - timedelta(days=1)).isoformat() if query.before else ""
    asked = {
        "status": _status_word(query) if query.statuses else "any",
        "resolver": _WHO.get(query.assignee, query.assignee),
        "created": f"{query.after or ''}..{last}" if query.after or last else "",
        **query.choices,
        **{one.field_id: str(one) for one in query.custom},
    }
    here = {name: value for name, value in address.params.items() if value and name not in ("q", "order")}
    both = [name for name, value in asked.items() if value not in ("", "any") and here.get(name, value) != value]
    is_known = query.assignee in ("", ME, NOBODY) and not query.tags and not query.requester and asked["status"]
    if both or not is_known or (query.after and query.before and query.after >= query.before):
        return None
    return queue_url(**{name: value for name, value in asked.items() if value} | here)


def _status_word(query: SearchQuery) -> str:
    """Return the word of the queue for the statuses of a query, "" where it has none."""
    words = {frozenset(filters.statuses(word)): word for word in (*Status, *filters.GROUPS)}
    return str(words.get(frozenset(query.statuses or ()), ""))


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


def _blank(title: str, text: str, *ways: tuple[str, str], icon: str = "empty") -> dict[str, Any]:
    return {
        "title": title,
        "text": text,
        "icon": icon,
        "actions": [{"url": url, "label": label} for url, label in ways],
    }
