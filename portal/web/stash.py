"""Keeps what a person typed when the form that carried it could not be taken.

The session ended, the tenant was switched in another tab, the engine was down: in each case the next page
carries the whole form along, shows it, and can send it again to where it belongs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.core import signing
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext as _

from portal.errors import Invalid

PAGE_MARK = "_page"
_SALT = "portal.web.stash"
_HIDDEN = {"csrfmiddlewaretoken", PAGE_MARK, "resume"}
_SECRETS = ("password", "credential", "one_time_code")  # words in the names of fields that are never kept
# Names of fields that nobody has typed into, or that the next page asks for itself.
_TECHNICAL = re.compile(
    "seen|seen_at|.*version|revision|request_id|back|next|tickets|email|setup|selected|asked|at|id|.*_before|then|whose"
    "|event|visibility|initial-.*|(of|in)_.*"
)
_LABELS = {"body": gettext_noop("Text"), "cc": gettext_noop("Copies to")}
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Stash:
    """One form: where it goes, its fields in order, and the mark of the page that it came from."""

    path: str
    fields: tuple[tuple[str, str], ...]
    page_mark: str = ""

    @classmethod
    def of(cls, request: HttpRequest) -> Stash | None:
        """Return the form in an unsafe request, or None where there is nothing to keep. Passwords are never kept."""
        if request.method != "POST":
            return None
        fields = tuple(
            (name, value)
            for name, values in request.POST.lists()
            for value in values
            if name not in _HIDDEN and isinstance(value, str)
        )
        if not fields or any(word in name for name in request.POST for word in _SECRETS):
            return None
        return cls(request.path, fields, str(request.POST.get(PAGE_MARK, "")))

    @property
    def shown(self) -> list[tuple[str, str]]:
        """Return label and text of each field that holds words: what a person would recognise."""
        chosen = sum(1 for name, _ in self.fields if name == "tickets")
        words = [
            (_(_LABELS.get(name) or name.replace("_", " ").capitalize()), gettext("Yes") if value == "on" else value)
            for name, value in self.fields
            if value.strip() and not _TECHNICAL.fullmatch(name) and not _ID.fullmatch(value)
        ]
        return [*words, (gettext("Tickets"), _("%(count)s selected") % {"count": chosen})] if chosen else words

    @property
    def token(self) -> str:
        """Return the stash as one signed text, to ride along in a hidden field."""
        return signing.dumps([self.path, self.fields, self.page_mark], salt=_SALT, compress=True)

    @classmethod
    def from_token(cls, token: str) -> Stash:
        """Raise Invalid for a token that we did not sign within the last day."""
        try:
            path, fields, mark = signing.loads(token, salt=_SALT, max_age=24 * 3600)
        except (signing.BadSignature, ValueError) as error:
            raise Invalid(gettext("What was kept is too old or damaged.")) from error
        return cls(path, tuple((str(n), str(v)) for n, v in fields), mark)
