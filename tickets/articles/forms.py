"""Forms about articles and sections. The rules check the texts; a form only takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tickets.articles.articles import BODY_LIMIT, TITLE_LIMIT, Text
from tickets.articles.catalogue import Section
from tickets.articles.sections import ABOUT_LIMIT, NAME_LIMIT

PUBLIC: Final = "public"
DESK: Final = "desk"


def _line(limit: int) -> forms.TextInput:
    return forms.TextInput(attrs={"autocomplete": "off", "dir": "auto", "data-characters": limit})


class ArticleForm(forms.Form):
    """A new article, or the draft of one. `version` is the edit that the writer saw, empty for a
    new article; static/js/drafts.js keeps it with an unsent text."""

    title = forms.CharField(
        label=_("Title"), widget=_line(TITLE_LIMIT), error_messages={"required": _("Enter a title.")}
    )
    section = forms.ChoiceField(label=_("Section"), required=False)
    visibility = forms.ChoiceField(
        label=_("Who can read it, once it is published"),
        choices=((PUBLIC, _("Everybody, in the public help centre")), (DESK, _("Members of this desk only"))),
        initial=PUBLIC,
        widget=forms.RadioSelect,
    )
    body = forms.CharField(
        label=_("Text"),
        required=False,
        help_text=_("You can use Markdown."),
        widget=forms.Textarea(attrs={"rows": 22, "data-markdown": True, "dir": "auto", "data-characters": BODY_LIMIT}),
    )
    version = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)

    def __init__(self, *args: Any, sections: Sequence[Section] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = [("", gettext("No section")), *((one.id, one.name) for one in sections)]
        given = str(self.data.get("section", "")) or str(self.initial.get("section", ""))
        if given and given not in dict(known):
            known.append((given[:100], gettext("The section it was in, which is gone")))
        self.fields["section"].choices = known  # type: ignore[attr-defined]  # of a ChoiceField

    @classmethod
    def of(cls, text: Text, edit: int, sections: Sequence[Section]) -> ArticleForm:
        """Return the form that holds an article's values."""
        visibility = PUBLIC if text.is_public else DESK
        initial = {
            "title": text.title,
            "body": text.body,
            "section": text.section,
            "visibility": visibility,
            "version": edit,
        }
        return cls(initial=initial, sections=sections)

    @property
    def text(self) -> Text:
        """The values as the rules take them."""
        given = self.cleaned_data
        return Text(given["title"], given["body"], given["section"], given["visibility"] == PUBLIC)


class SectionForm(forms.Form):
    """The name and description of a section."""

    name = forms.CharField(
        label=_("Name"),
        widget=_line(NAME_LIMIT),
        error_messages={"required": _("Enter a name.")},
        show_hidden_initial=True,
    )
    about = forms.CharField(
        label=_("Description"),
        required=False,
        help_text=_("A sentence for readers."),
        widget=_line(ABOUT_LIMIT),
        show_hidden_initial=True,
    )
