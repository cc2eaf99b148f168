"""Declare what a route costs, beside its view: `@costs(query="ticket", trips=1, reads=8)`.

An access level declares once, by `of_level`, what all of its pages read, such as the identity of the caller; a view's
own declaration leaves that out. The portal does not start with a view that has none: see `checks.py`. A request that
took more than its route declares is noted for the operators (portal/load/excess_costs.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from portal.load import excess_costs
from portal.schema.access_patterns import Cost, cost

View = TypeVar("View", bound=Callable[..., Any])
ANY: Final = ""  # of a view that declares one cost for all of its methods

_levels: dict[str, Cost] = {}
_now_and_then: dict[str, Cost] = {}


def costs(*, on: str = ANY, **declared: Any) -> Callable[[View], View]:
    """Declare what one request takes beside what its access level takes, for the methods that are in `on`, such as
    "POST", or for all. The other arguments are those of `cost`."""
    return declare(cost(**declared), on=on)


def declare(what: Cost, *, on: str = ANY, module: str = "") -> Callable[[View], View]:
    """Declare a cost that several views have. `module` is where a declaration stands that is not beside its view."""

    def declared(view: View) -> View:
        view.costs = {**getattr(view, "costs", {}), on: what}  # type: ignore[attr-defined]  # read by `own_of`
        places = {**getattr(view, "costs_in", {}), on: module or view.__module__}
        view.costs_in = places  # type: ignore[attr-defined]  # read by checks.py
        return view

    return declared


def of_level(level: str, what: Cost) -> None:
    """Declare what each request of an access level may take beside the declaration of its view."""
    _levels[level] = what


def now_and_then(name: str, what: Cost) -> Cost:
    """Declare what any request may take beside its route where this happens: see `beside`."""
    _now_and_then[name] = what
    return what


def own_of(view: Callable[..., Any], method: str) -> Cost | None:
    """Return what a view declares for a method, None where it declares nothing."""
    declared: dict[str, Cost] = getattr(view, "costs", {})
    return declared.get("GET" if method == "HEAD" else method, declared.get(ANY))


def level_of(view: Callable[..., Any]) -> Cost:
    """Return what the access level of a view declares."""
    return _levels.get(getattr(getattr(view, "access", None), "level", ""), Cost())


def levels() -> dict[str, Cost]:
    """Return what access levels declare, by name."""
    return dict(sorted(_levels.items()))


def happenings() -> dict[str, Cost]:
    """Return what any request may take now and then, by name."""
    return dict(_now_and_then)


def beside(request: Any, what: Cost) -> None:
    """Let one request take more than its route declares: what happens now and then on any page."""
    request.costs_beside = what + getattr(request, "costs_beside", Cost())


def counted(request: Any, number: int) -> None:
    """Tell how many there are of what the route declares its cost for each. It is 1 where nobody tells."""
    request.costs_counted = number


def parts_of(request: Any, method: str) -> tuple[Cost | None, Cost]:
    """Return the bound of the view, None where it declares none, and what the request may take beside that, by its
    access level and by what happened."""
    match = request.resolver_match
    own = own_of(match.func, method) if match else None
    level = level_of(match.func) if match else Cost()
    counted = getattr(request, "costs_counted", 1)
    return own and own.of(counted), level + getattr(request, "costs_beside", Cost())


def note(request: Any, route: tuple[str, str], trips: int, reads: float, writes: float) -> None:
    """Compare what a request took with the bound of its route, and note what took more."""
    own, beside = parts_of(request, route[0])
    if own is not None and not (bound := own + beside).has_room_for((trips, reads, writes)):
        excess_costs.note(" ".join(route), bound, (trips, reads, writes))
