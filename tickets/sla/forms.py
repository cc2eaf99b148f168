"""Take what admins enter about targets and business hours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from django import forms
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tickets.sla import policy_versions
from tickets.sla.policy import ANY, Calendar, SlaPolicy, Span, TargetRule, duration_text
from tickets.sla.policy_versions import MOST_RULES
from tickets.ticket.due_marks import TARGETS
from tickets.ticket.fields import PRIORITY

DAYS: Final = tuple(WEEKDAYS.values())
_WARNINGS: Final = [
    (0, gettext_lazy("No warning")),
    (10, gettext_lazy("When 10% of the time is left")),
    (25, gettext_lazy("When 25% of the time is left")),
    (50, gettext_lazy("When 50% of the time is left")),
]
_SPAN: Final = re.compile(r"(\d{1,2})(?:[:.](\d\d))?\s*[-\u2013]\s*(\d{1,2})(?:[:.](\d\d))?\Z", re.ASCII)
_DURATION: Final = re.compile(r"(?:(\d{1,4})\s*h(?:ours?)?)?\s*(?:(\d{1,4})\s*m(?:in)?(?:utes)?)?\Z", re.ASCII | re.I)
_DAY: Final = 1440  # minutes
_LONGEST: Final = 500 * 3600  # seconds of a target
_LEAST_WEEK: Final = 60  # open minutes of a week
_SPARE: Final = 2  # empty rows for further rules
_LINE: Final = {"autocomplete": "off"}
_CRITERIA: Final = {"priority": gettext_lazy("Priority"), "group": gettext_lazy("Group"), "kind": gettext_lazy("Kind")}
_ANY: Final = {
    "priority": gettext_lazy("Any priority"),
    "group": gettext_lazy("Any group"),
    "kind": gettext_lazy("Any kind"),
}


def _duration(text: str) -> int:
    """Return the seconds of 4 h, 30 min or 1 h 30 min, 0 of an empty text."""
    match = _DURATION.match(text.strip())
    seconds = (int(match[1] or 0) * 60 + int(match[2] or 0)) * 60 if match else 0
    if text.strip() and not seconds:
        raise forms.ValidationError(_("Write a time as 4 h, 30 min or 1 h 30 min."), code="invalid")
    if seconds > _LONGEST:
        raise forms.ValidationError(_("A target can be at most 500 h of business time."), code="invalid")
    return seconds


def hours_text(spans: Sequence[Span]) -> str:
    """Return the hours of a day as people type them."""
    return ", ".join(f"{a // 60:02}:{a % 60:02}\u2013{b // 60:02}:{b % 60:02}" for a, b in spans)


def _hours(text: str) -> tuple[Span, ...]:
    spans: list[Span] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _SPAN.match(part)
        hour, minute, last_hour, last_minute = (int(one or 0) for one in match.groups()) if match else (0, 60, 0, 0)
        begin, end = hour * 60 + minute, last_hour * 60 + last_minute
        if minute > 59 or last_minute > 59 or end > _DAY:
            raise forms.ValidationError(_("Write hours as 09:00\u201312:00, 13:00\u201317:00."), code="invalid")
        if begin >= end:
            raise forms.ValidationError(_("%(part)s ends before it begins.") % {"part": part}, code="invalid")
        spans.append((begin, end))
    spans.sort()
    if any(one[1] > other[0] for one, other in pairwise(spans)):
        raise forms.ValidationError(_("Two of these hours overlap."), code="invalid")
    return tuple(spans)


class SlaForm(forms.Form):
    """A desk's policy. Each row of targets is a rule; a row without targets is none."""

    warning = forms.TypedChoiceField(label=gettext_lazy("Warn people"), coerce=int, choices=_WARNINGS)
    country = forms.ChoiceField(
        label=gettext_lazy("Holidays of"),
        required=False,
        help_text=gettext_lazy("On them the desk is closed."),
        widget=forms.Select(attrs={"data-countries": "", "translate": "no"}),
    )
    region = forms.CharField(
        label=gettext_lazy("Region"),
        required=False,
        max_length=20,
        help_text=gettext_lazy("Its code, such as BE for Berlin, where regions have holidays of their own."),
        widget=forms.TextInput(attrs=_LINE),
    )
    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        policy: SlaPolicy,
        groups: Mapping[str, str],
        kinds: Mapping[str, str],
    ) -> None:
        self.names = {"priority": dict(PRIORITY.choices), "group": groups, "kind": kinds}
        values: dict[str, Any] = {
            "warning": policy.warning,
            "country": policy.country,
            "region": policy.region,
            "version": policy.version,
            **{f"hours_{n}": hours_text(spans) for n, spans in enumerate(policy.calendar.hours)},
        }
        super().__init__(data, initial=values)
        self.fields["country"].choices = [("", _("No country")), *policy_versions.countries().items()]  # type: ignore[attr-defined]
        for number, day in enumerate(DAYS):
            self.fields[f"hours_{number}"] = forms.CharField(
                label=day,
                required=False,
                max_length=120,
                widget=forms.TextInput(attrs=_LINE | {"placeholder": _("closed")}),
            )
        sent = sum(f"rule_{n}_priority" in (data or {}) for n in range(MOST_RULES))
        self.rows = range(min(MOST_RULES, sent or len(policy.rules) + _SPARE))
        for number in self.rows:
            self._add_row(number, policy.rules[number] if number < len(policy.rules) else TargetRule())

    def _add_row(self, number: int, rule: TargetRule) -> None:
        for name in _CRITERIA:
            stored = getattr(rule, name)
            known = self.names[name]
            kept = {} if stored in known or stored == ANY else {stored: _("No longer offered")}
            choices = [(ANY, _ANY[name]), *known.items(), *kept.items()]
            field = forms.ChoiceField(
                label=_("%(field)s, row %(number)s") % {"field": _CRITERIA[name], "number": number + 1},
                required=False,
                choices=choices,
            )
            self.fields[f"rule_{number}_{name}"] = field
            self.initial[f"rule_{number}_{name}"] = stored
        for name, label in TARGETS.items():
            text = forms.CharField(
                label=_("%(field)s, row %(number)s") % {"field": _(label), "number": number + 1},
                required=False,
                max_length=30,
                widget=forms.TextInput(attrs=_LINE | {"placeholder": _("none")}),
            )
            self.fields[f"rule_{number}_{name}"] = text
            self.initial[f"rule_{number}_{name}"] = duration_text(getattr(rule, name))

    criteria = _CRITERIA

    @property
    def table(self) -> list[dict[str, Any]]:
        """Return the fields of each row by their names."""
        return [{name: self[f"rule_{number}_{name}"] for name in (*_CRITERIA, *TARGETS)} for number in self.rows]

    @property
    def days(self) -> list[Any]:
        return [self[f"hours_{number}"] for number in range(len(DAYS))]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        for name in [*(f"hours_{n}" for n in range(len(DAYS))), *(f"rule_{n}_{t}" for n in self.rows for t in TARGETS)]:
            try:
                data[name] = (_hours if name.startswith("hours") else _duration)(data.get(name) or "")
            except forms.ValidationError as error:
                self.add_error(name, error)
        open_minutes = sum(b - a for n in range(len(DAYS)) for a, b in data.get(f"hours_{n}") or ())
        if not self.errors and open_minutes < _LEAST_WEEK:
            self.add_error("hours_0", _("The desk has to be open for an hour of the week at least."))
        return data

    def policy(self, zone: str) -> SlaPolicy:
        """Return the policy that was entered, without version and days off."""
        data = self.cleaned_data
        region = data["region"].strip().upper()
        regions = {known.upper(): known for known in policy_versions.regions(data["country"])}
        rules = [
            TargetRule(**{name: data[f"rule_{number}_{name}"] for name in (*_CRITERIA, *TARGETS)})
            for number in self.rows
        ]
        return SlaPolicy(
            0,
            Calendar(zone, tuple(data[f"hours_{n}"] for n in range(len(DAYS)))),
            tuple(rule for rule in rules if any(getattr(rule, name) for name in TARGETS)),
            data["warning"],
            data["country"],
            regions.get(region, region),
        )
