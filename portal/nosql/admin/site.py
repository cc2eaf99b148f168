"""Serve the admin site: its routes, who may come in, how a change is committed, and what its front page says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from operator import itemgetter
from typing import Any, ClassVar, Literal

from django.contrib.admin import AdminSite
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db import DEFAULT_DB_ALIAS
from django.urls import URLPattern, include, path
from django.views.decorators.cache import never_cache

from portal.dynamo.client import fan_out
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from portal.errors import Conflict, TransactionRefused
from portal.nosql.planner.facade import Facade

View = Callable[..., Any]


@dataclass(frozen=True)
class Notice:
    """Describe something on the front page that needs attention. Lower numbers stand first."""

    order: int
    text: str
    url: str = ""
    level: Literal["error", "warning", "info"] = "warning"


Watcher = Callable[[], list[Notice]]


@dataclass(frozen=True)
class AuditedChange:
    """Describe what is about to be written, for the audit trail: the fields that change, before and after."""

    verb: Literal["added", "changed", "removed"]
    obj: Any
    before: Mapping[str, object] = field(default_factory=dict)
    after: Mapping[str, object] = field(default_factory=dict)


class DynamoAdminSite(AdminSite):
    """Serve facades only. Signing in and out is the project's own."""

    index_template = "nosql_admin/index.html"
    app_index_template = "nosql_admin/app_index.html"

    # What features add, by class: they do so while the site is being made.
    _watchers: ClassVar[list[Callable[[], list[Watcher]]]] = []
    _pages: ClassVar[list[tuple[str, View, str, str]]] = []

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._watchers, cls._pages = [], []

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self._actions = {}  # no delete_selected: one page states the consequences of one deletion
        self._global_actions = {}

    # --- what a project decides ---

    def declare(self, view: View) -> View:
        """Be called with every view of the site, to note on it who may call it."""
        return view

    def commit(self, request: Any, transaction: Transaction, change: AuditedChange) -> None:
        """Write, with whatever belongs into the same transaction. Raises PortalError; here without any audit."""
        try:
            PLATFORM.transact(transaction)
        except TransactionRefused as error:
            raise Conflict("Somebody else was faster. This is how it is now.") from error

    def hide(self, request: Any, objects: Iterable[Any]) -> None:
        """Hide the content of these objects where the person who asks may not see them."""

    def history(self, request: Any, obj: Any) -> Any:
        """Return a planned query of the object's history, newest first, or None where none is kept."""
        return None

    # --- what features add ---

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Register facades. Models of SQL, which installed apps offer by themselves, are passed over."""
        offered = [model_or_iterable] if isinstance(model_or_iterable, type) else model_or_iterable
        facades = [model for model in offered if issubclass(model, Facade)]
        if facades:
            super().register(facades, admin_class, **options)

    @classmethod
    def watches(cls, watcher: Watcher) -> Watcher:
        """Decorate a function that makes one read and returns its notices; the front page calls all of them at once."""
        cls._watchers.append(lambda: [watcher])
        return watcher

    @classmethod
    def watches_each(cls, things: Callable[[], Iterable[Any]]) -> Callable[[Callable[[Any], list[Notice]]], Any]:
        """Decorate a function of one thing, which the front page calls for each of them, at once with all others."""

        def add(watcher: Callable[[Any], list[Notice]]) -> Callable[[Any], list[Notice]]:
            cls._watchers.append(lambda: [partial(watcher, thing) for thing in things()])
            return watcher

        return add

    @classmethod
    def page(cls, route: str, *, name: str, title: str) -> Callable[[View], View]:
        """Decorate `view(request)`, a page of its own that the sidebar and the front page link to."""

        def add(view: View) -> View:
            cls._pages.append((route, view, name, title))
            return view

        return add

    # --- routes ---

    def get_urls(self) -> list[Any]:
        """Return the routes without what needs SQL (autocomplete, view on site), and without a sign-in of its own."""
        urls: list[Any] = [
            path("", self.admin_view(self.index), name="index"),
            path("jsi18n/", self.admin_view(self.i18n_javascript, cacheable=True), name="jsi18n"),
        ]
        for route, view, name, _ in self._pages:
            urls.append(path(route, self.admin_view(view), name=name))
        for model, model_admin in self._registry.items():
            prefix = f"{model._meta.app_label}/{model._meta.model_name}/"
            urls.append(path(prefix, include(model_admin.urls)))
        urls.append(path("<slug:app_label>/", self.admin_view(self.app_index), name="app_list"))
        for pattern in _views(urls):
            pattern.callback = self.declare(pattern.callback)
        return urls

    def admin_view(self, view: View, cacheable: bool = False) -> Any:
        """Check who is calling, last of all; the project's middleware checks CSRF."""

        def inner(request: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.has_permission(request):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        return update_wrapper(inner if cacheable else never_cache(inner), view)

    # --- pages ---

    def index(self, request: Any, extra_context: Any = None) -> Any:
        watchers = [watcher for watchers in self._watchers for watcher in watchers()]
        answers = fan_out(watchers) if watchers else []
        notices = sorted((notice for answer in answers for notice in answer), key=lambda n: (n.order, n.text))
        return super().index(request, {"notices": notices, **(extra_context or {})})

    def each_context(self, request: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().each_context(request)
        return context | {
            "pages": [(f"{self.name}:{name}", title) for _, _, name, title in sorted(self._pages, key=itemgetter(3))]
        }

    def get_log_entries(self, request: Any) -> Any:
        return []  # each object has its history; LogEntry is a table of SQL


def content_type(model: Any) -> None:
    """Make Django's cache of content types know this model: the change form asks for its number, and for no more."""
    meta = model._meta
    known = ContentType(pk=0, app_label=meta.app_label, model=meta.model_name)
    known._state.adding = False
    ContentType.objects._add_to_cache(DEFAULT_DB_ALIAS, known)  # type: ignore[attr-defined]  # missing in the stubs


def _views(patterns: list[Any]) -> Iterator[URLPattern]:
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield pattern
        else:
            yield from _views(pattern.url_patterns)
