"""Declare who may call a view, the methods that it answers, and what each costs: `@on_get(query="ticket", trips=1)`.

A view without an access declaration is refused: tenants/tenancy/access_middleware.py. A level declares once what all of
its pages read, such as the identity of the caller; a view's own declaration leaves that out. The portal does not
start with a view that declares no cost: see `checks.py`. A request that took more is noted for the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from django.urls import Resolver404, resolve
from django.views.decorators.http import require_http_methods

from portal.load import excess_costs
from portal.schema.access_patterns import Cost, cost

SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")  # methods that change nothing

View = TypeVar("View", bound=Callable[..., Any])

# Takes the arguments of the route, and returns the context of a desk. Raises NotFound.
FindDesk = Callable[[Mapping[str, Any]], Any]

# The first words of the addresses of guests' pages, known before anything else of a request is. No desk has them.
GUEST_PLACES: Final = ("forms", "help", "r")

OPEN_PAGES: Final = "/r/live/"  # among those, what members' open pages ask: see `guest`


@dataclass(frozen=True)
class Access:
    """`public`: anybody. `signed_in`: anybody with an account. `member`: of the pinned tenant, from `role` upwards.
    `operator`: who runs the platform, for all tenants. `api`: who has an API key with the scope that `scopes` names for
    the method; there are no others. `guest`: anybody, for the one desk that `find` makes of the address, as
    `request.desk`; no cookie is read or set, so that a signed-in person is a guest there, too. With `of_member` the
    address stands for a member, whose open page asks by it: what it asks is charged as the desk's own."""

    level: Literal["public", "signed_in", "member", "operator", "api", "guest"]
    role: str = ""
    scopes: Mapping[str, str] = field(default_factory=dict, hash=False)
    find: FindDesk | None = field(default=None, hash=False)
    of_member: bool = False


def _declare(view: View, access: Access) -> View:
    view.access = access  # type: ignore[attr-defined]  # read by the middleware
    return view


def public(view: View) -> View:
    return _declare(view, Access("public"))


def signed_in(view: View) -> View:
    return _declare(view, Access("signed_in"))


def operator(view: View) -> View:
    return _declare(view, Access("operator"))


def guest(find: FindDesk, *, of_member: bool = False) -> Callable[[View], View]:
    """Open the view to people outside the desk that `find` makes of the route's arguments.

    There is no cookie that another site's form could use, so such a view asks for no token against forgery.
    """

    def declare(view: View) -> View:
        view.csrf_exempt = True  # type: ignore[attr-defined]  # read by Django's middleware
        return _declare(view, Access("guest", find=find, of_member=of_member))

    return declare


def is_guest_path(path: str) -> bool:
    """Tell whether an address is one of guests' pages."""
    return path.lstrip("/").partition("/")[0] in GUEST_PLACES


def is_path_of_open_page(path: str) -> bool:
    """Tell whether an address is one that members' open pages ask by a signed token."""
    return path.startswith(OPEN_PAGES)


class Mark:
    """Something that a view declares beside its access: `mark(view)` declares it, and `mark.on(view)` tells of it."""

    def __init__(self, name: str) -> None:
        self._name = f"has_mark_{name}"

    def __call__(self, view: View) -> View:
        setattr(view, self._name, True)
        return view

    def on(self, view: Callable[..., Any]) -> bool:
        return getattr(view, self._name, False)


# May be called however much its tenant asks for: it leads in, out, or to another tenant.
unlimited = Mark("unlimited")
# A form that only members themselves may send, and nobody in their place, whatever else they may do.
in_person = Mark("in_person")
# May be called by an operator who acts as a member: it ends that.
leads_out = Mark("leads_out")
# Is open to the desk's auditors, too, who may see nothing else of a desk. The role of the view is asked of members.
for_auditors = Mark("for_auditors")
# May change something although its desk is closing, which otherwise can only be read.
open_while_closing = Mark("open_while_closing")


def is_unlimited(view: Callable[..., Any]) -> bool:
    """Tell whether a view belongs to no tenant's use: it says so, or it is for those who run the platform."""
    access: Access | None = getattr(view, "access", None)
    return unlimited.on(view) or (access is not None and access.level == "operator")


def is_shut_while_closing(path: str) -> bool:
    """Tell whether a form that is sent to a path is refused while its desk is closing."""
    try:
        view = resolve(path).func
    except Resolver404:
        return False
    access: Access | None = getattr(view, "access", None)
    return access is not None and access.level == "member" and not open_while_closing.on(view)


def member(role: str) -> Callable[[View], View]:
    """Open the view to members from this role upwards; its unsafe requests need the page's mark."""
    return lambda view: _declare(view, Access("member", role))


def api(view: View, scopes: Mapping[str, str]) -> View:
    """Open the view to API keys: for each method to those with its scope. No cookie opens it."""
    return _declare(view, Access("api", scopes=scopes))


ANY: Final = ""  # of a view that declares one cost for all of its methods

_levels: dict[str, Cost] = {}
_now_and_then: dict[str, Cost] = {}


def costs(**declared: Any) -> Callable[[View], View]:
    """Declare what one request takes beside what its access level takes, whatever its method. The arguments are those
    of `cost`."""
    return declare_cost(cost(**declared))


def on_get(**declared: Any) -> Callable[[View], View]:
    """Let a view answer GET and HEAD, at this cost; other methods than those that it declares are refused with 405."""
    return _on("GET", "HEAD", what=cost(**declared))


def on_post(**declared: Any) -> Callable[[View], View]:
    """Let a view answer POST, at this cost; other methods than those that it declares are refused with 405."""
    return _on("POST", what=cost(**declared))


def _on(*methods: str, what: Cost) -> Callable[[View], View]:
    def declared(view: View) -> View:
        if not hasattr(view, "methods"):
            answered: list[str] = []  # Django's decorator keeps the list itself, which grows with the next declaration
            view = require_http_methods(answered)(view)
            view.methods = answered  # type: ignore[attr-defined]  # read by checks.py
        view.methods[:] = sorted({*view.methods, *methods})  # type: ignore[attr-defined]
        return declare_cost(what, on=methods[0])(view)

    return declared


def declare_cost(what: Cost, *, on: str = ANY, module: str = "") -> Callable[[View], View]:
    """Declare a cost that several views have. `module` is where a declaration stands that is not beside its view."""

    def declared(view: View) -> View:
        view.costs = {**getattr(view, "costs", {}), on: what}  # type: ignore[attr-defined]  # read by `own_cost_of`
        places = {**getattr(view, "costs_in", {}), on: module or view.__module__}
        view.costs_in = places  # type: ignore[attr-defined]  # read by checks.py
        return view

    return declared


def declare_level_cost(level: str, what: Cost) -> None:
    """Declare what each request of an access level may take beside the declaration of its view."""
    _levels[level] = what


def cost_now_and_then(name: str, what: Cost) -> Cost:
    """Declare what any request may take beside its route where this happens: see `add_cost`."""
    _now_and_then[name] = what
    return what


def own_cost_of(view: Callable[..., Any], method: str) -> Cost | None:
    """Return what a view declares for a method, None where it declares nothing. A method that it refuses may take what
    GET does: the identity is read before, together with what the page needs."""
    declared: dict[str, Cost] = getattr(view, "costs", {})
    return declared.get("GET" if method == "HEAD" else method, declared.get(ANY, declared.get("GET")))


def cost_of_level(view: Callable[..., Any]) -> Cost:
    return _levels.get(getattr(getattr(view, "access", None), "level", ""), Cost())


def costs_of_levels() -> dict[str, Cost]:
    """Return what access levels declare, by name."""
    return dict(sorted(_levels.items()))


def costs_of_happenings() -> dict[str, Cost]:
    """Return what any request may take now and then, by name."""
    return dict(_now_and_then)


def add_cost(request: Any, what: Cost) -> None:
    """Let one request take more than its route declares: what happens now and then on any page."""
    request.costs_beside = what + getattr(request, "costs_beside", Cost())


def counted(request: Any, number: int) -> None:
    """Tell how many there are of what the route declares its cost for each. It is 1 where nobody tells."""
    request.costs_counted = number


def parts_of_cost(request: Any, method: str) -> tuple[Cost | None, Cost]:
    """Return the bound of the view, None where it declares none, and what the request may take beside that, by its
    access level and by what happened."""
    match = request.resolver_match
    own = own_cost_of(match.func, method) if match else None
    level = cost_of_level(match.func) if match else Cost()
    counted = getattr(request, "costs_counted", 1)
    return own and own.of(counted), level + getattr(request, "costs_beside", Cost())


def note_cost(request: Any, route: tuple[str, str], trips: int, reads: float, writes: float) -> None:
    """Compare what a request took with the bound of its route, and note what took more."""
    match = request.resolver_match
    declared = own_cost_of(match.func, route[0]) if match else None
    if declared is not None and declared.has_room_for((trips, reads, writes)):  # as nearly always
        return
    own, beside = parts_of_cost(request, route[0])
    if own is not None and not (bound := own + beside).has_room_for((trips, reads, writes)):
        excess_costs.note(" ".join(route), bound, (trips, reads, writes))
