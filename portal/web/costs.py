"""Declare what a route costs, beside its view: `@costs(query="ticket", trips=1, reads=8)`.

An access level declares once, by `of_level`, what all of its pages read, such as the identity of the caller; a view's
own declaration leaves that out. A view without one does not start: see `checks.py`. A request that took more than its
route declares is noted for the operators (portal/load/excess_costs.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

from portal.load import excess_costs
from portal.schema.access_patterns import Cost, cost

View = TypeVar("View", bound=Callable[..., Any])
ANY: Final = ""  # of a view that declares one cost for all of its methods

_levels: dict[str, Cost] = {}


def costs(*, on: str = ANY, **declared: Any) -> Callable[[View], View]:
    """Declare what one request takes beside what its access level takes, for the methods that are in `on`, such as
    "POST", or for all. The other arguments are those of `cost`."""
    return declare(cost(**declared), on=on)


def declare(what: Cost, *, on: str = ANY) -> Callable[[View], View]:
    """Declare a cost that several views have."""

    def declared(view: View) -> View:
        view.costs = {**getattr(view, "costs", {}), on: what}  # type: ignore[attr-defined]  # read by `of`
        return view

    return declared


def of_level(level: str, what: Cost) -> None:
    """Declare what each request of an access level may take beside the declaration of its view."""
    _levels[level] = what
    of.cache_clear()


def now_and_then(name: str, what: Cost) -> Cost:
    """Declare what any request may take beside its route where this happens: see `beside`."""
    _levels[name] = what
    return what


@cache
def of(view: Callable[..., Any], method: str) -> Cost | None:
    """Return the bound of a request, None where its method has no declaration."""
    declared: dict[str, Cost] = getattr(view, "costs", {})
    own = declared.get("GET" if method == "HEAD" else method, declared.get(ANY))
    return own + level_of(view) if own is not None else None


def level_of(view: Callable[..., Any]) -> Cost:
    """Return what the access level of a view declares."""
    return _levels.get(getattr(getattr(view, "access", None), "level", ""), Cost())


def levels() -> dict[str, Cost]:
    """Return what each access level declares, and what happens now and then, by name."""
    return dict(sorted(_levels.items()))


def beside(request: Any, what: Cost) -> None:
    """Let one request take more than its route declares: what happens now and then on any page."""
    request.costs_beside = what + getattr(request, "costs_beside", Cost())


def bound_of(request: Any, method: str) -> Cost | None:
    """Return the bound of a request, with what it takes beside its route; None where there is no declaration."""
    match = request.resolver_match
    bound = of(match.func, method) if match else None
    return bound + getattr(request, "costs_beside", Cost()) if bound is not None else None


def note(request: Any, route: tuple[str, str], trips: int, reads: float, writes: float) -> None:
    """Compare what a request took with the bound of its route, and note what took more."""
    bound = bound_of(request, route[0])
    if bound is not None and not bound.has_room_for(trips, reads, writes):
        excess_costs.note(" ".join(route), bound, trips, reads, writes)
