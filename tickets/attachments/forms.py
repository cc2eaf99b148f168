"""The files of a form: those that the browser has sent to the bucket, and small ones within the form itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext as _

from portal.errors import Invalid
from tenants.tenancy.context import TenantContext
from tickets.attachments import attachments
from tickets.attachments.attachments import FileRef

IDS: Final = "files"  # hidden inputs, one for each file in the bucket
CONTENTS: Final = "attached"  # the input of a browser without JavaScript


@dataclass(frozen=True)
class SentFiles:
    """The files that came with a form, and sentences about those that could not be taken."""

    files: Sequence[FileRef] = ()
    problems: Sequence[str] = ()


NO_FILES: Final = SentFiles()


def files_field() -> forms.Field:
    """Return the field of files, at which a form shows their problems. Its values are read by `files_of`."""
    return forms.Field(label=_("Files"), required=False, widget=forms.FileInput)


def files_of(request: HttpRequest, tenant: TenantContext) -> SentFiles:
    """Return the files of a form that was sent. Small ones within it are stored now, so that no answer loses them."""
    files: list[FileRef] = []
    problems: list[str] = []
    ids = request.POST.getlist(IDS)
    if ids:
        found = attachments.arrived(tenant, ids[: attachments.MOST_FILES])
        files, problems = found.files, found.problems
    for content in request.FILES.getlist(CONTENTS):
        if len(files) >= attachments.MOST_FILES:
            problems.append(attachments.too_many().message)
            break
        try:
            files.append(attachments.store(tenant, content.name or "", content.read()))
        except Invalid as error:
            problems.append(error.message)
    return SentFiles(files, problems)


def guest_files_of(request: HttpRequest, desk: TenantContext, form_id: str) -> SentFiles:
    """Return the files that somebody outside the desk has sent to the bucket for this form (`guest_form`).

    Within the form itself no file is taken from them: without JavaScript, files are sent by mail.
    """
    ids = request.POST.getlist(IDS)
    if not ids:
        return NO_FILES
    problems = [] if len({*ids}) <= attachments.GUEST_FILES else [attachments.too_many_of_guest().message]
    found = attachments.arrived(desk, ids[: attachments.GUEST_FILES], form_id=form_id)
    return SentFiles(found.files, [*problems, *found.problems])
