"""A bucket, and ways to send files as a browser does."""

from __future__ import annotations

import uuid

import pytest
import urllib3

from portal.objects.object_store import ObjectStore, UploadForm, tenant_prefix
from tenants.tenancy.context import TenantContext
from tests.support.world import World
from tickets.attachments import downloads, stored


@pytest.fixture(autouse=True)
def _empty(world: World) -> None:
    """Begin without objects: tests use the same desks again."""
    for tenant in world.tenants.values():
        for kind in ("files", "uploads", "previews"):
            for key in objects_of(tenant.tenant_id, kind):
                ObjectStore("lifecycle", tenant.tenant_id).delete(key)


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


def key_of(tenant: TenantContext, number: int, file_id: str) -> str:
    """Return the key of the object of a ticket's file."""
    return stored.object_key(tenant.tenant_id, stored.object_of(downloads.file_of(tenant, number, file_id)))


def objects_of(tenant_id: str, kind: str = "files") -> list[str]:
    """Return the keys of the objects of a tenant, of one kind."""
    return [found.key for found in ObjectStore("lifecycle", tenant_id).list(tenant_prefix(tenant_id, kind))]
