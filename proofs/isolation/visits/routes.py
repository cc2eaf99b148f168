"""Every address of the portal, from its URL configuration: one that is added is attacked without a change here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver


@dataclass(frozen=True)
class Route:
    """An address with its parameters as Django writes them: `tickets/<ticket_number:number>/`.

    `weight` is how often it is visited: a page of a tenant has more to give away than the sign-in.
    """

    path: str
    weight: int = 1

    def filled(self, value: Callable[[str, str], str]) -> str:
        """Return the address with `value(converter, name)` in each place."""
        named = re.sub(r"\(\?P<(\w+)>[^()]*\)", r"<re:\1>", self.path)
        filled = re.sub(r"<(?:(\w+):)?(\w+)>", lambda m: value(m[1] or "str", m[2]), named)
        return "/" + re.sub(r"[\^$]|\\Z", "", filled)


def routes(patterns: Sequence[URLPattern | URLResolver] | None = None, prefix: str = "") -> Iterator[Route]:
    """Return every address that the portal answers, from the configuration itself."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, path)
        else:
            access = getattr(pattern.callback, "access", None)
            yield Route(path, 4 if access is None or access.level == "member" else 1)
