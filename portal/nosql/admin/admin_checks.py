"""Make options of a ModelAdmin that cannot work without SQL errors of `manage.py check`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.contrib.admin.checks import ModelAdminChecks
from django.contrib.admin.options import ShowFacets
from django.core.checks import CheckMessage, Error
from django.db.models import BooleanField

from portal.nosql.planner.facade import Facade
from portal.nosql.planner.patterns import CustomListing, Get, Lookup, Query

_UNAVAILABLE: Final = {
    "autocomplete_fields": "it searches for parts of words",
    "date_hierarchy": "it counts and groups by date",
    "filter_horizontal": "there are no relations between items",
    "filter_vertical": "there are no relations between items",
    "inlines": "an item is saved by a rule of its own",
    "list_editable": "many rows would be saved without one transaction",
    "list_select_related": "there are no joins",
    "raw_id_fields": "there are no relations between items",
    "show_full_result_count": "nothing is counted",
}


class DynamoAdminChecks(ModelAdminChecks):
    def check(self, admin_obj: Any, **kwargs: Any) -> list[CheckMessage]:
        if not issubclass(admin_obj.model, Facade) or not any(isinstance(p, Get) for p in admin_obj.model.patterns):
            return [_error(admin_obj, "The model must be a Facade whose patterns include a Get.", "E001")]
        return [*super().check(admin_obj, **kwargs), *_problems(admin_obj)]


def _problems(admin: Any) -> Iterator[CheckMessage]:
    patterns = admin.model.patterns
    lists = [p for p in patterns if isinstance(p, Query | CustomListing)]
    for option, why in _UNAVAILABLE.items():
        if getattr(admin, option):
            yield _error(admin, f"{option} cannot work on DynamoDB: {why}.", "E002")
    if admin.show_facets is not ShowFacets.NEVER:
        yield _error(admin, "show_facets cannot work on DynamoDB: nothing is counted.", "E002")
    if not (admin.actions_on_top or admin.actions_on_bottom):
        yield _error(admin, "Without actions Django puts a style into the page, which a strict CSP stops.", "E003")
    for field in admin.model._meta.get_fields():
        if field.is_relation:
            yield _error(admin, f"{field.name} is a relation; an item holds an id instead.", "E004")
    prefixed = {p.order for p in lists if p.prefix}
    pointed = {p.field for p in patterns if isinstance(p, Lookup)} | {admin.model._meta.pk.name, "pk"}
    pointed |= {name for p in patterns if isinstance(p, Get) for name in p.fields}
    for name in admin.search_fields:
        if not (name[:1] == "^" and name[1:] in prefixed) and not (name[:1] == "=" and name[1:] in pointed):
            hint = "Use “^field” for a pattern that has a prefix, “=field” for a Lookup or a part of the pk."
            yield _error(admin, f"No pattern searches by “{name}”.", "E005", hint)
    for name in admin.ordering or ():
        if name.lstrip("-") not in {p.order for p in lists}:
            yield _error(admin, f"No pattern sorts by “{name}”.", "E006")
    known = {n for p in lists for n in (*p.by, *(p.may if isinstance(p, CustomListing) else ()))} | set(
        admin.model.filters
    )
    for item in admin.list_filter:
        yield from _filter_problems(admin, item, known)


def _filter_problems(admin: Any, item: Any, known: set[str]) -> Iterator[CheckMessage]:
    if isinstance(item, type):
        return
    if not isinstance(item, str) or item not in known:
        yield _error(admin, f"No pattern filters by “{item}”, and the facade's `filters` do not name it.", "E007")
        return
    field = admin.model._meta.get_field(item)
    if not field.choices and not isinstance(field, BooleanField):
        yield _error(admin, f"“{item}” has no choices: listing its values would read all of them.", "E008")


def _error(admin: Any, text: str, number: str, hint: str | None = None) -> Error:
    return Error(text, hint=hint, obj=admin.__class__, id=f"nosql_admin.{number}")
