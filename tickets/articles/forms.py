"""Forms about articles and sections. The rules check the texts; a form only takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django import forms

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

    title = forms.CharField(widget=_line(TITLE_LIMIT), error_messages={"required": "Enter a title."})
    section = forms.ChoiceField(required=False)
    visibility = forms.ChoiceField(
        label="Who can read it, once it is published",
        choices=((PUBLIC, "Everybody, in the public help centre"), (DESK, "Members of this desk only")),
        initial=PUBLIC,
        widget=forms.RadioSelect,
    )
    body = forms.CharField(
        label="Text",
        required=False,
        help_text="You can use Markdown.",
        widget=forms.Textarea(attrs={"rows": 22, "data-markdown": True, "dir": "auto", "data-characters": BODY_LIMIT}),
    )
    version = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)

    def __init__(self, *args: Any, sections: Sequence[Section] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = [("", "No section"), *((one.id, one.name) for one in sections)]
        given = str(self.data.get("section", "")) or str(self.initial.get("section", ""))
        if given and given not in dict(known):
            known.append((given[:100], "The section it was in, which is gone"))
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

    name = forms.CharField(widget=_line(NAME_LIMIT), error_messages={"required": "Enter a name."})
    about = forms.CharField(
        label="Description", required=False, help_text="A sentence for readers.", widget=_line(ABOUT_LIMIT)
    )
