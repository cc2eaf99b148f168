"""Send files to the bucket by signed forms, and find those of tickets by signed addresses."""

from __future__ import annotations

from typing import Annotated, Any, Final

from django.conf import settings
from django.http import HttpResponse
from ninja import Path
from pydantic import Field

from api.edge import answers
from api.edge.answers import ApiInput, ApiModel
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.ticket_schemas import FILE, FileId, FileOut, Number
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tickets.attachments import attachments, downloads

router: Final = ApiRouter()

_FORM: Final[dict[str, Any]] = {
    "id": "4f1c2d3e5a6b47c8d9e0f1a2b3c4d5e6",
    "name": "report.pdf",
    "size": 48210,
    "url": "https://pooldesk-mail.s3.eu-central-1.amazonaws.com",
    "fields": {
        "key": "tenant/0a1b2c3d4e5f40718293a4b5c6d7e8f9/files/4f1c2d3e5a6b47c8d9e0f1a2b3c4d5e6",
        "policy": "...",
    },
    "seconds": attachments.FORM_SECONDS,
}


class FileToSend(ApiInput, json_schema_extra={"example": {"name": "report.pdf", "size": 48210}}):
    """A file that is about to be sent."""

    name: Annotated[str, Field(min_length=1, max_length=1000)]
    size: Annotated[int, Field(ge=1, le=settings.FILE_MOST_BYTES, description="in bytes, exactly")]


class FormToSend(ApiModel, json_schema_extra={"example": _FORM}):
    """A form by which the file is sent: a POST of `multipart/form-data` to `url` with all `fields` as they are, and the
    content as the last field, `file`. Name its `id` in a comment or a ticket afterwards, within a day."""

    id: str
    name: str = Field(description="as it is shown and saved")
    size: int
    url: str
    fields: dict[str, str]
    seconds: int = Field(description="for which the form is good")


class FileList(ApiModel, json_schema_extra={"example": {"data": [FILE]}}):
    """The files of a ticket."""

    data: list[FileOut]


class FileAddress(ApiModel, json_schema_extra={"example": {"url": "https://...", "seconds": downloads.SECONDS}}):
    """An address at which the file can be had without a key for a moment: keep it as secret as the file."""

    url: str
    seconds: int = Field(description="for which the address is good")


@router.declare("POST", "/files", scope=Scope.COMMENTS_WRITE, answers={201: FormToSend})
@costs(get="file", write="file", trips=3, reads=12, writes=2)
def begin_upload(request: ApiRequest, file: FileToSend) -> HttpResponse:
    """Begin to send a file.

    The answer is a signed form for exactly this size. A file that no comment and no ticket names within a day is
    deleted.
    """
    begun = attachments.begin(request.acting, file.name, file.size)
    told = FormToSend(
        id=begun.file.id,
        name=begun.file.name,
        size=begun.file.size,
        url=begun.form.url,
        fields=begun.form.fields,
        seconds=attachments.FORM_SECONDS,
    )
    return answers.answer(told, status=201)


@router.declare("GET", "/tickets/{ticket_number:number}/files", scope=Scope.TICKETS_READ, answers={200: FileList})
@costs(query="ticket", trips=2, reads=8)
def list_files(request: ApiRequest, number: Number) -> HttpResponse:
    """List the files of a ticket that can be had, oldest first.

    Those of internal notes need the scope notes:read.
    """
    return answers.answer(FileList(data=FileOut.all_of(downloads.files_of(request.tenant, number))))


@router.declare(
    "GET",
    "/tickets/{ticket_number:number}/files/{file_id}",
    scope=Scope.TICKETS_READ,
    answers={200: FileAddress},
)
@costs(get="file, ticket", trips=2, reads=1)
def find_file(request: ApiRequest, number: Number, file_id: Annotated[FileId, Path()]) -> HttpResponse:
    """Find a file of a ticket.

    A file of an internal note needs the scope notes:read.
    """
    url = downloads.address_of(request.tenant, number, file_id)
    return answers.answer(FileAddress(url=url, seconds=downloads.SECONDS))
