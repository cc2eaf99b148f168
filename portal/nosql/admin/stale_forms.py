"""Let forms know what their page showed, so that nobody overwrites what they have not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.core import signing

from portal.errors import PortalError

_SALT = "nosql.admin.seen"

if TYPE_CHECKING:  # only the stubs know what it is generic in
    _ModelForm = forms.ModelForm[Any]
else:
    _ModelForm = forms.ModelForm


class SeenForm(_ModelForm):
    """Carry the values that were shown in a hidden, signed field.

    If the stored ones differ when the form comes back, it is refused with both and shown again upon what is stored now:
    sending it once more is then a decision.
    """

    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    refusal: PortalError | None = None  # of a write that was tried with this form
    is_conflict = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stored = {} if self.instance._state.adding else self._values()
        self.fields["seen"].initial = self._token()

    def _values(self) -> dict[str, str]:
        fields = {field.name: field for field in self.instance._meta.concrete_fields}
        return {name: str(fields[name].value_from_object(self.instance)) for name in self.fields if name in fields}

    def _token(self) -> str:
        return signing.dumps(self._stored, salt=_SALT, compress=True)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        problems = [] if self.instance._state.adding else self._compare(cleaned)
        if self.refusal is not None:
            field = getattr(self.refusal, "field", None)
            if field in self.fields:
                self.add_error(field, self.refusal.message)
            else:
                problems.insert(0, self.refusal.message)
        for problem in problems:
            self.add_error(None, problem)
        if problems:
            # What is sent next was decided upon what this page shows.
            data: Any = self.data.copy()  # type: ignore[attr-defined]  # of a request: a QueryDict
            data[self.add_prefix("seen")] = self._token()
            self.data = data
        return cleaned

    def _compare(self, cleaned: dict[str, Any]) -> list[str]:
        try:
            seen = signing.loads(self.data.get(self.add_prefix("seen"), ""), salt=_SALT)
        except (signing.BadSignature, ValueError):
            return ["This form does not say what it showed. Look at it again before you save."]
        conflicts = [
            f"{self.fields[name].label}: you saw “{seen[name]}”, now it is “{now}”, and you entered "
            f"“{cleaned.get(name, '')}”. Save again to decide for yours."
            for name, now in self._stored.items()
            if seen.get(name, now) != now
        ]
        self.is_conflict = bool(conflicts)
        return conflicts
