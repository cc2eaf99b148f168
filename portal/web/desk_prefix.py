"""Put a desk's name in front of the addresses of its pages: `/acme/tickets/111/`.

The name in an address is an assertion. It is compared with the pinned tenant before a view runs and takes no part in
any key: tenants/tenancy/access_middleware.py. `reverse()` fills in the name of the desk in use, which
the identity middleware sets for each request; outside of a request, `addresses_of` does. Where no desk is in use they
give the address without its name, which leads to the pinned desk: portal/web/views.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from django.urls import (
    Resolver404,
    ResolverMatch,
    URLPattern,
    URLResolver,
    get_script_prefix,
    include,
    resolve,
    reverse,
)
from django.urls.resolvers import RoutePattern

# Stands for the name in the patterns that Django keeps for reversing: those are made once per process.
_PLACEHOLDER: Final = "~desk~/"
_NAME: Final = re.compile(r"([a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?)/")
# The name of the desk, and Django's script prefix: that one is a look into another context for each address.
_in_use: ContextVar[tuple[str, str] | None] = ContextVar("desk in use", default=None)


class DeskPrefix:
    """Matches any desk's name at the beginning of an address, and hands it on as the argument `desk`."""

    converters: ClassVar[dict[str, Any]] = {}
    regex: ClassVar[re.Pattern[str]] = re.compile(re.escape(_PLACEHOLDER))  # read by reverse() alone

    def match(self, path: str) -> tuple[str, tuple[()], dict[str, str]] | None:
        name = _NAME.match(path)
        return (path[name.end() :], (), {"desk": name[1]}) if name else None

    def check(self) -> list[Any]:
        return []

    def describe(self) -> str:
        return f"'{self}'"

    def __str__(self) -> str:
        return "<slug:desk>/"


class _NamespaceResolver(URLResolver):
    """A namespace with pages of desks. Django asks it for addresses as long as nothing stands in front of it."""

    def _reverse_with_prefix(self, lookup_view: Any, _prefix: str, *args: Any, **kwargs: Any) -> str:
        address = str(super()._reverse_with_prefix(lookup_view, _prefix, *args, **kwargs))  # type: ignore[misc]
        rest = address.removeprefix(_prefix + _PLACEHOLDER)
        if rest == address:
            return address
        return f"{_prefix}{name}/{rest}" if (name := in_use()) else _prefix + rest


def namespace(urlconf: str) -> URLResolver:
    """Include a URL configuration with an `app_name`, some of whose patterns are in `desk_pages`."""
    module, app_name, name = include(urlconf)
    return _NamespaceResolver(RoutePattern("", is_endpoint=False), module, app_name=app_name, namespace=name)


class _DeskResolver(URLResolver):
    """The pages of desks of a namespace. An address whose word behind the name begins none of them is not tried."""

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(str(one.pattern).partition("/")[0] for one in self.url_patterns)

    def resolve(self, path: str) -> ResolverMatch:
        match = self.pattern.match(path)
        if match and match[0].partition("/")[0] not in self._words:
            raise Resolver404({"path": match[0]})
        return super().resolve(path)


def desk_pages(*patterns: URLPattern | URLResolver) -> URLResolver:
    """Return the patterns of pages that belong to a desk, behind its name. Each begins with a word."""
    listed: Sequence[URLPattern | URLResolver] = patterns
    return _DeskResolver(DeskPrefix(), listed)  # type: ignore[arg-type]  # has what Django's own patterns have


@contextmanager
def addresses_of(name: str) -> Iterator[None]:
    """Let addresses inside be those of the desk with this name; of no desk where it is empty."""
    token = _in_use.set((name, get_script_prefix()))
    try:
        yield
    finally:
        _in_use.reset(token)


def use(name: str) -> None:
    """Let addresses be, from here to the end of the request, those of this desk."""
    _in_use.set((name, get_script_prefix()))


def in_use() -> str:
    """Return the name that addresses have now, "" for none."""
    now = _in_use.get()
    return now[0] if now else ""


def address(route: str, *args: Any) -> str:
    """Return the address of a route for the desk in use. A page asks for the same ones again."""
    desk, script_prefix = _in_use.get() or ("", get_script_prefix())
    return _address(desk, script_prefix, route, *args)


@lru_cache(maxsize=4096, typed=True)
def _address(desk: str, script_prefix: str, route: str, *args: Any) -> str:
    return reverse(route, args=args)


_SHORT: Final = 200  # characters of an address for which the answer is kept


def desk_of(address: str) -> str:
    """Return the name of the desk that an address of ours names, "" for none. `address` may be anything."""
    return _desk_of(address) if address and len(address) <= _SHORT else _desk_of.__wrapped__(address)


@lru_cache(maxsize=1024)
def _desk_of(address: str) -> str:
    try:
        return str(resolve(urlsplit(address).path).kwargs.get("desk", ""))
    except (Resolver404, ValueError):
        return ""
