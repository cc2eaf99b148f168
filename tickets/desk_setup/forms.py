"""Show a form whose values somebody else has changed since its page was opened."""

from __future__ import annotations

from typing import Any, Final

from django.forms import Field, Form, Select
from django.utils.text import Truncator
from django.utils.translation import gettext as _

_LONGEST: Final = 300  # characters of a stored value that a form repeats


def put_on_newer(form: Form, stored: Form, *, version: str = "version") -> None:
    """Put what was typed on the version of `stored`, a form of what is stored now. Nothing happens on the same version.

    Each field that differs says what is stored, so that saving again replaces nothing unseen.
    """
    newer = str(stored.get_initial_for_field(stored.fields[version], version))
    if form.data.get(form.add_prefix(version)) == newer:
        return
    data: Any = form.data.copy()  # type: ignore[attr-defined]  # a QueryDict, in all views
    data[form.add_prefix(version)] = newer
    form.data = data
    for bound in form.visible_fields():
        now = (
            stored.get_initial_for_field(stored.fields[bound.name], bound.name) if bound.name in stored.fields else None
        )
        if bound.field.has_changed(now, _plain(bound.data)):
            form.add_error(bound.name, _("Stored now: %(value)s") % {"value": _words(bound.field, now)})


def _shown(form: Form, name: str) -> Any:
    """Return the value with which a form shows a field: a list without a chosen value shows its first one."""
    if name not in form.fields:
        return None
    field = form.fields[name]
    now = form.get_initial_for_field(field, name)
    values = [value for value, _label in _choices(field)] if isinstance(field.widget, Select) else []
    return values[0] if now in (None, "") and values and "" not in values else now


def _plain(data: Any) -> Any:
    return data.replace("\r\n", "\n") if isinstance(data, str) else data


def _words(field: Field, value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(_words(field, one) for one in value) or _("(empty)")
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    labels = {str(of): str(label) for of, label in _choices(field)}
    return Truncator(labels.get(str(value), str(value))).chars(_LONGEST) if value not in (None, "") else _("(empty)")


def _choices(field: Any) -> list[tuple[Any, Any]]:
    pairs: list[tuple[Any, Any]] = []
    for value, label in getattr(field, "choices", ()):
        pairs += label if isinstance(label, (list, tuple)) else [(value, label)]
    return pairs
