"""Show one planned read as a page: cursors in place of page numbers, a sentence in place of a larger read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator

from portal.errors import Invalid
from portal.nosql.planner.patterns import ResultPage
from portal.nosql.planner.planning import Unplannable, served


class InputFilter(SimpleListFilter):
    """Offer a text field for one facade field. A subclass sets `title`, `parameter_name`, and maybe the rest."""

    template = "nosql_admin/input_filter.html"
    help_text = ""
    lookup = "exact"

    def clean(self, value: str) -> str | None:
        """Return the field's value for what was typed, or None where there is no such thing."""
        return value

    def lookups(self, request: Any, model_admin: Any) -> list[Any]:
        return []

    def has_output(self) -> bool:
        return True

    def queryset(self, request: Any, queryset: Any) -> Any:
        typed = (self.value() or "").strip()
        if not typed:
            return queryset
        value = self.clean(typed)
        if value is None:
            raise Invalid(f"There is no {self.title} “{typed[:60]}”.")
        return queryset.filter(**{f"{self.parameter_name}__{self.lookup}": value})

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield the form's field, with the other parameters of the address as hidden fields."""
        others = changelist.get_filters_params() | {"o": changelist.params.get("o"), "q": changelist.query}
        hidden = [
            (name, value)
            for name, values in others.items()
            if name != self.parameter_name and values
            for value in (values if isinstance(values, list) else [values])
        ]
        yield {"name": self.parameter_name, "value": self.value() or "", "hidden": hidden, "help": self.help_text}


CURSOR_VAR: Final = "_after"  # begins like no field: get_query_string removes by prefix

# Errors that a hostile or outdated query string can cause before or while it is planned.
_REFUSALS = (DisallowedModelAdminLookup, IncorrectLookupParameters, Invalid, Unplannable, ValidationError, ValueError)


class DynamoChangeList(ChangeList):
    """Narrow, read and link one page of a list.

    `refusal` says why nothing is listed and is "" where something is. `bad_request` tells that the address demands what
    cannot be; an address that is only incomplete keeps its choices, so that the next one completes them.
    """

    refusal = ""
    bad_request = False
    cursor = ""
    page: ResultPage
    model_admin: Any  # a DynamoAdmin
    queryset: Any
    root_queryset: Any

    def get_queryset(self, request: Any, exclude_parameters: Any = None) -> Any:
        """Narrow the query by the filters, the order and the search. Nothing is planned or read yet."""
        self.cursor = self.params.pop(CURSOR_VAR, self.cursor)
        try:
            return super().get_queryset(request, exclude_parameters)
        except _REFUSALS as error:
            self._refuse(request, error)
            return self.root_queryset.none()

    def get_results(self, request: Any) -> None:
        """Plan the query and read its page, once."""
        try:
            self.page = self.queryset.page(self.list_per_page, self.cursor)
            self.model_admin.prepare(self.page.objects, self.list_display)
            self.model_admin.admin_site.hide(request, self.page.objects)
        except _REFUSALS as error:
            self._refuse(request, error)
            self.page = ResultPage([])
        self.result_list = self.page.objects
        self.result_count = len(self.result_list)
        self.full_result_count = None
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.show_admin_actions = bool(self.result_list)
        self.paginator = Paginator(self.result_list, self.list_per_page)

    def _refuse(self, request: Any, error: Exception) -> None:
        cause = error.args[0] if isinstance(error, IncorrectLookupParameters) and error.args else error
        if isinstance(cause, Unplannable | Invalid):
            self.refusal = str(cause)
        else:
            self.refusal = f"This address asks for something that is not there. {served(self.model)}"
        is_plain = not (self.params or self.cursor)
        self.bad_request = not is_plain and not getattr(cause, "incomplete", False)
        if self.bad_request:
            self._forget_parameters(request)

    def _forget_parameters(self, request: Any) -> None:
        """Show the filters beside the list as on its plain address."""
        kept, self.filter_params, self.params = self.filter_params, {}, {}
        (self.filter_specs, self.has_filters, _, _, self.has_active_filters) = self.get_filters(request)
        self.clear_all_filters_qs = "?"
        self.has_active_filters = bool(kept)

    # --- links ---

    def get_filters_params(self, params: Any = None) -> Any:
        kept = super().get_filters_params(params)
        kept.pop(CURSOR_VAR, None)
        return kept

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        """Return an address that begins at the first page again, unless it names a cursor."""
        if CURSOR_VAR not in (new_params or {}):
            remove = [*(remove or ()), CURSOR_VAR]
        return super().get_query_string(new_params, remove)

    def _get_deterministic_ordering(self, ordering: Any) -> list[Any]:
        return list(ordering)  # a sort key is total within its partition

    @property
    def next_url(self) -> str:
        return self.get_query_string({CURSOR_VAR: self.page.next}) if self.page.next else ""

    @property
    def previous_url(self) -> str:
        return self.get_query_string({CURSOR_VAR: self.page.previous}) if self.page.previous else ""

    @property
    def first_url(self) -> str:
        return self.get_query_string() if self.cursor else ""

    @property
    def rows_search_url(self) -> str:
        """Return the address that searches the rows for the term, where keys serve only its beginning."""
        field = self.model_admin.search_rows_by
        return self.get_query_string({field: self.query}, remove=[SEARCH_VAR]) if field and self.query else ""

    @property
    def without_search_url(self) -> str:
        return self.get_query_string(remove=[SEARCH_VAR]) if self.query else ""
