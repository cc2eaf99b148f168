"""Show a form whose values somebody else has changed since its page was opened.

A form knows what its page showed by a version that is stored with the values, or by its fields' hidden initial values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.forms import Field, Form, Select
from django.utils.html import strip_tags
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from portal.errors import Conflict, Invalid
from portal.web import locales

_LONGEST: Final = 300  # characters of a stored value that a form repeats


@contextmanager
def told_in(form: Form, newer: Callable[[], Form] | None = None, *, is_new: bool = False) -> Iterator[None]:
    """Do what a form is for. Where that is refused, the form says why, at the field that the error names.

    A conflict puts what was typed on the version of `newer`, a form of what is stored now. Of something that `is_new`,
    nothing is: only its neighbours have changed.
    """
    try:
        yield
    except (Invalid, Conflict) as error:
        form.add_error(error.field if error.field in form.fields else None, error.message)
        if isinstance(error, Conflict):
            form.conflict = error.status  # type: ignore[attr-defined]  # read by `status_of`
            if newer is not None:
                put_on_newer(form, newer(), is_new=is_new)


def status_of(form: Form) -> int:
    """Return the status of a page: that of a conflict, 422 where something in its form is wrong, else 200."""
    return getattr(form, "conflict", 0) or (422 if form.errors else 200)


def put_on_newer(form: Form, stored: Form, *, version: str = "version", is_new: bool = False) -> None:
    """Put what was typed on the version of `stored`, a form of what is stored now. Nothing happens on the same version.

    Each field that differs says what is stored, so that saving again replaces nothing unseen; nothing
    is stored of what `is_new`.
    """
    newer = str(stored.get_initial_for_field(stored.fields[version], version))
    if form.data.get(form.add_prefix(version)) == newer:
        return
    data: Any = form.data.copy()  # type: ignore[attr-defined]  # a QueryDict, in all views
    data[form.add_prefix(version)] = newer
    form.data = data
    for bound in () if is_new else form.visible_fields():
        now = _shown(stored, bound.name)
        if bound.field.has_changed(now, _plain(bound.data)):
            _say(form, bound.name, now)


def put_on_stored(form: Form, stored: Form) -> bool:
    """Let a sent form change only what was changed on its page: the other fields get the values of `stored`, a form of
    what is stored now. The fields have `show_hidden_initial`. Call this before anything validates the form.

    A field that was changed here and elsewhere says what is stored, and saving again replaces it. Return whether there
    is such a field.
    """
    data: Any = form.data.copy()  # type: ignore[attr-defined]  # a QueryDict, in all views
    met: list[tuple[str, Any]] = []
    for bound in form.visible_fields():
        field, shown, now = bound.field, form.data.get(bound.html_initial_name), _shown(stored, bound.name)
        text = "" if now is None else str(now)
        is_omitted = field.widget.value_omitted_from_data(form.data, {}, bound.html_name)
        is_omitted |= shown is None and bound.html_name not in form.data  # a box that the page did not have
        if is_omitted or (shown is not None and not _differs(field, shown, bound.data)):
            data[bound.html_name] = text
        elif shown is not None and _differs(field, shown, text) and _differs(field, text, bound.data):
            met.append((bound.name, now))
        data[bound.html_initial_name] = text
    form.data = data
    for name, now in met:
        _say(form, name, now)
    return bool(met)


def _say(form: Form, name: str, now: Any) -> None:
    form.add_error(name, _("Stored now: %(value)s") % {"value": _words(form.fields[name], now)})


def _differs(field: Field, shown: Any, typed: Any) -> bool:
    try:
        return bool(field.has_changed(field.to_python(_plain(shown)), _plain(typed)))
    except ValidationError:
        return True


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
    if isinstance(value, date):
        return locales.current().day(value)
    labels = {
        str(of): strip_tags(label) if isinstance(label, SafeString) else str(label) for of, label in _choices(field)
    }
    return Truncator(labels.get(str(value), str(value))).chars(_LONGEST) if value not in (None, "") else _("(empty)")


def _choices(field: Any) -> list[tuple[Any, Any]]:
    pairs: list[tuple[Any, Any]] = []
    for value, label in getattr(field, "choices", ()):
        pairs += label if isinstance(label, (list, tuple)) else [(value, label)]
    return pairs
