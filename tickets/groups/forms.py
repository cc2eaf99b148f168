"""The forms of groups and of availability."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final

from django import forms
from django.utils.translation import gettext, gettext_lazy

from tenants.membership.forms import OfferedMembers, TypedMembersField
from tickets.desk_setup.setup import AgentGroup, Assigning
from tickets.groups.agent_changes import MEMBERS_LIMIT
from tickets.groups.group_changes import NAME_LIMIT
from tickets.groups.roster import Agent
from tickets.groups.stored import MOST_CAPACITY

WAYS: Final = (
    (Assigning.HAND.value, gettext_lazy("By hand: tickets wait in the group until somebody takes them")),
    (Assigning.TURN.value, gettext_lazy("In turn: each member gets the next one (round robin)")),
    (Assigning.LOAD.value, gettext_lazy("To whoever has the fewest open tickets (least busy)")),
)


class GroupForm(forms.Form):
    """A group with its members. `people` are those who can be in it, as ids and names."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto", "data-characters": NAME_LIMIT}),
        error_messages={"required": gettext_lazy("Enter a name.")},
    )
    assigns = forms.ChoiceField(label=gettext_lazy("New tickets are assigned"), choices=WAYS)
    members = forms.MultipleChoiceField(
        label=gettext_lazy("Members"), required=False, widget=forms.CheckboxSelectMultiple
    )
    is_default = forms.BooleanField(
        label=gettext_lazy("Default group"),
        required=False,
        help_text=gettext_lazy("New tickets come into it where nobody says another group."),
    )
    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    def __init__(
        self,
        *args: Any,
        people: OfferedMembers,
        stored: AgentGroup | None = None,
        members: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["members"]
        field.choices = [*people]
        if people.find is not None:  # others than those at hand
            self.fields["added"] = people.field(("", ""), takes=TypedMembersField, label=gettext("Add members"))
            self.order_fields(["name", "assigns", "members", "added"])
        field.error_messages["invalid_choice"] = gettext("Somebody whom you chose is no agent of this desk any more.")
        known = {one for one, _ in people}
        if stored is not None:
            self.initial = {
                "name": stored.name,
                "assigns": stored.assigns if stored.assigns in [*Assigning] else Assigning.HAND.value,
                "members": [one for one in members if one in known],
                "is_default": stored.is_default,
                **self.initial,
            }

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if added := data.get("added"):
            data["members"] = [*dict.fromkeys([*data.get("members", ()), *added])]
        if len(data.get("members", ())) > MEMBERS_LIMIT:
            said = gettext("A group has at most %(limit)s members; these are %(count)s.")
            self.add_error("members", said % {"limit": MEMBERS_LIMIT, "count": len(data["members"])})
        return data


class AvailabilityForm(forms.Form):
    """Until when somebody is away and who stands in; for admins also how many tickets they can have."""

    away_until = forms.DateField(
        label=gettext_lazy("Away until"),
        required=False,
        help_text=gettext_lazy("The first day back. Leave it empty when there is no absence."),
        widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"}),
        error_messages={"invalid": gettext_lazy("Enter a day as 2026-11-30.")},
    )
    stand_in = forms.ChoiceField(
        label=gettext_lazy("Stand-in"),
        required=False,
        help_text=gettext_lazy("Gets what the groups would assign meanwhile."),
    )
    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    def __init__(
        self, *args: Any, people: OfferedMembers, of: Agent, has_capacity: bool, today: str, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["stand_in"]
        nobody = ("", gettext("Nobody"))
        if people.find is not None:
            self.fields["stand_in"] = field = people.field(nobody, label=field.label, help_text=field.help_text)
        else:
            field.choices = [nobody, *people]
        field.error_messages["invalid_choice"] = gettext("Choose an agent from the list.")
        self.fields["away_until"].widget.attrs["min"] = (date.fromisoformat(today) + timedelta(1)).isoformat()
        if has_capacity:
            self.fields["capacity"] = forms.IntegerField(
                label=gettext("Open tickets at most"),
                required=False,
                min_value=1,
                max_value=MOST_CAPACITY,
                help_text=gettext("Groups assign no more to somebody who has so many. Leave it empty for any number."),
            )
        is_away = of.is_away(today)
        self.initial = {
            "away_until": of.away_until if is_away else "",
            "stand_in": of.stand_in if is_away else "",
            "capacity": of.capacity or None,
            **self.initial,
        }
