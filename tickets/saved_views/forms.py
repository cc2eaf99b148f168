"""The form of a saved view."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from tickets.saved_views.saved_views import NAME_LIMIT

OWN, DESK = "own", "desk"


class ViewForm(forms.Form):
    """The name of a view; of a new one also for whom it is, where the person may choose that."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=NAME_LIMIT, error_messages={"required": gettext_lazy("Enter a name.")}
    )
    whose = forms.ChoiceField(
        label=gettext_lazy("Who sees it"),
        choices=[(OWN, gettext_lazy("Only me")), (DESK, gettext_lazy("Everybody in this desk"))],
        required=False,
        widget=forms.RadioSelect,
    )
    starred = forms.BooleanField(label=gettext_lazy("Show it beside my queue"), required=False)

    def __init__(self, *args: Any, is_new: bool, may_share: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not is_new:
            del self.fields["starred"]
        if not is_new or not may_share:
            del self.fields["whose"]
