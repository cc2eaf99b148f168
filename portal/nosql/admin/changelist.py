"""The change list: one planned read for a page, cursors in place of numbers, a sentence in place of a larger read."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator

from portal.errors import Invalid
from portal.nosql.planner.planning import Unplannable, served

CURSOR_VAR: Final = "_after"  # begins like no field: get_query_string removes by prefix

# What a hostile or outdated query string can run into before or while it is planned.
_REFUSALS = (DisallowedModelAdminLookup, IncorrectLookupParameters, Invalid, Unplannable, ValidationError, ValueError)


class DynamoChangeList(ChangeList):
    """`refusal` says why nothing is listed, "" where something is; `bad_request` whether the address asked for it."""

    refusal = ""
    bad_request = False
    rows: Any = None
    queryset: Any
    root_queryset: Any

    def get_queryset(self, request: Any, exclude_parameters: Any = None) -> Any:
        self.cursor = self.params.pop(CURSOR_VAR, "")
        try:
            planned: Any = super().get_queryset(request, exclude_parameters)
            planned.check()
        except _REFUSALS as error:
            self._refuse(error, asked=bool(self.params))
            self._forget_parameters(request)
            planned = self.root_queryset.none()
        return planned

    def get_results(self, request: Any) -> None:
        try:
            self.rows = self.queryset.page(self.list_per_page, self.cursor)
        except _REFUSALS as error:
            self._refuse(error, asked=True)
            self.rows = self.root_queryset.none().rows()
        self.result_list = self.rows.objects
        self.result_count = len(self.result_list)
        self.full_result_count = None
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.show_admin_actions = bool(self.result_list)
        self.paginator = Paginator(self.result_list, self.list_per_page)

    def _refuse(self, error: Exception, *, asked: bool) -> None:
        cause = error.args[0] if isinstance(error, IncorrectLookupParameters) and error.args else error
        self.bad_request = asked and not getattr(cause, "incomplete", False)
        if isinstance(cause, Unplannable | Invalid):
            self.refusal = str(cause)
        else:
            self.refusal = f"This address asks for something that is not there. {served(self.model)}"

    def _forget_parameters(self, request: Any) -> None:
        """What the filters beside the list look at, as if nothing had been asked."""
        kept, self.filter_params = self.filter_params, {}
        (self.filter_specs, self.has_filters, _, _, self.has_active_filters) = self.get_filters(request)
        self.clear_all_filters_qs = "?"
        self.has_active_filters = bool(kept)

    # --- links ---

    def get_filters_params(self, params: Any = None) -> Any:
        found = super().get_filters_params(params)
        found.pop(CURSOR_VAR, None)
        return found

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        """Every change of filter, order or search begins at the first page again."""
        if CURSOR_VAR not in (new_params or {}):
            remove = [*(remove or ()), CURSOR_VAR]
        return super().get_query_string(new_params, remove)

    def _get_deterministic_ordering(self, ordering: Any) -> list[Any]:
        return list(ordering)  # a sort key is total within its partition

    @property
    def next_url(self) -> str:
        return self.get_query_string({CURSOR_VAR: self.rows.next}) if self.rows.next else ""

    @property
    def previous_url(self) -> str:
        return self.get_query_string({CURSOR_VAR: self.rows.previous}) if self.rows.previous else ""

    @property
    def first_url(self) -> str:
        return self.get_query_string() if self.cursor else ""
