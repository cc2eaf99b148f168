"""Filter a list by what is typed in beside it, such as the partition to be listed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.admin import SimpleListFilter

from portal.errors import Invalid


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
