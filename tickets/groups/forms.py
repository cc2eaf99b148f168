"""The forms of groups and of availability."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final

from django import forms

from tickets.desk_setup.group_names import AgentGroup, Assigning
from tickets.groups.agent_changes import MEMBERS_LIMIT
from tickets.groups.group_changes import NAME_LIMIT
from tickets.groups.roster import Agent
from tickets.groups.stored import MOST_CAPACITY

WAYS: Final = (
    (Assigning.HAND.value, "By hand: tickets wait in the group until somebody takes them"),
    (Assigning.TURN.value, "In turn: each member gets the next one (round robin)"),
    (Assigning.LOAD.value, "To whoever has the fewest open tickets (least busy)"),
)


class GroupForm(forms.Form):
    """A group with its members. `people` are those who can be in it, as ids and names."""

    name = forms.CharField(
        label="Name",
        widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto", "data-characters": NAME_LIMIT}),
        error_messages={"required": "Enter a name."},
    )
    assigns = forms.ChoiceField(label="New tickets are assigned", choices=WAYS)
    members = forms.MultipleChoiceField(label="Members", required=False, widget=forms.CheckboxSelectMultiple)
    is_default = forms.BooleanField(
        label="Default group", required=False, help_text="New tickets come into it where nobody says another group."
    )
    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    def __init__(
        self,
        *args: Any,
        people: Sequence[tuple[str, str]],
        stored: AgentGroup | None = None,
        members: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["members"]
        field.choices = people
        field.error_messages["invalid_choice"] = "Somebody whom you chose is no agent of this desk any more."
        known = {one for one, _ in people}
        if stored is not None:
            self.initial = {
                "name": stored.name,
                "assigns": stored.assigns if stored.assigns in [*Assigning] else Assigning.HAND.value,
                "members": [one for one in members if one in known],
                "is_default": stored.is_default,
                **self.initial,
            }

    def clean_members(self) -> list[str]:
        chosen: list[str] = self.cleaned_data["members"]
        if len(chosen) > MEMBERS_LIMIT:
            raise forms.ValidationError(f"A group has at most {MEMBERS_LIMIT} members; these are {len(chosen)}.")
        return chosen


class AvailabilityForm(forms.Form):
    """Until when somebody is away and who stands in; for admins also how many tickets they can have."""

    away_until = forms.DateField(
        label="Away until",
        required=False,
        help_text="The first day back. Leave it empty when there is no absence.",
        widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"}),
        error_messages={"invalid": "Enter a day as 2026-11-30."},
    )
    stand_in = forms.ChoiceField(
        label="Stand-in", required=False, help_text="Gets what the groups would assign meanwhile."
    )
    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    def __init__(
        self, *args: Any, people: Sequence[tuple[str, str]], of: Agent, has_capacity: bool, today: str, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["stand_in"]
        field.choices = [("", "Nobody"), *(one for one in people if one[0] != of.id)]
        field.error_messages["invalid_choice"] = "Choose an agent from the list."
        self.fields["away_until"].widget.attrs["min"] = (date.fromisoformat(today) + timedelta(1)).isoformat()
        if has_capacity:
            self.fields["capacity"] = forms.IntegerField(
                label="Open tickets at most",
                required=False,
                min_value=1,
                max_value=MOST_CAPACITY,
                help_text="Groups assign no more to somebody who has so many. Leave it empty for any number.",
            )
        is_away = of.is_away(today)
        self.initial = {
            "away_until": of.away_until if is_away else "",
            "stand_in": of.stand_in if is_away else "",
            "capacity": of.capacity or None,
            **self.initial,
        }
