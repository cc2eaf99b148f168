"""A bucket, and ways to send files as a browser does."""

from __future__ import annotations

import uuid
from dataclasses import replace

import urllib3

from portal.objects.object_store import UploadForm

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100


def send(form: UploadForm, content: bytes, **changed: str | None) -> tuple[int, str]:
    """Send a form as a browser does, with other fields where some are named. Return the status and the answer."""
    fields = {name: value for name, value in (form.fields | changed).items() if value is not None}
    boundary = uuid.uuid4().hex
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n'
    body = "".join([*parts, head]).encode() + content + f"\r\n--{boundary}--\r\n".encode()
    answer = urllib3.request(
        "POST", form.url, body=body, headers={"Content-Type": f"multipart/form-data; boundary={boundary}"}
    )
    return answer.status, answer.data.decode()


def with_key(form: UploadForm, key: str) -> UploadForm:
    return replace(form, fields={**form.fields, "key": key})
