"""The way to objects: one connection for each role and process, shared by all threads.

Objects lie in one bucket. Those of a tenant have keys that begin with `tenant/<tenant id>/`; a role reaches what the
packages have granted it (`ObjectGrant`), and the guard refuses the rest before it is sent. On AWS the policy of the
role does, where a tenant's requests are signed with credentials that are bound to the tenant.

Source: AWS, "Amazon S3 data consistency model" (a list shows each object that was put before).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from typing import Any, Final
from urllib.parse import urlencode
from xml.sax.saxutils import escape

import botocore.config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, ReadTimeoutError
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.handlers import add_expect_header
from botocore.parsers import ResponseParserError
from botocore.signers import S3PostPresigner
from django.conf import settings
from django.utils.http import content_disposition_header

from portal import aws_session
from portal.errors import NotFound, PortalError, Rejected, Throttled, Unavailable
from portal.isolation import credentials, guard, object_guard
from portal.schema import keys
from portal.schema.registry import TENANT_OBJECTS, Role

_POOL: Final = 64  # connections
_ATTEMPTS: Final = 3
_READ_SECONDS: Final = 20  # of a request; a letter of 25 MB may take some
_PIECE: Final = 64 * 1024  # bytes that are read at once of an object that is passed on
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,200}\Z")
_THROTTLES: Final = {"SlowDown", "RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequests"}
_MISSING: Final = {"NoSuchKey", "404", "NotFound"}


class TooLarge(Rejected):
    """The object has more bytes than the caller takes. It was not read."""

    code = "too_large"


class EmptyObject(Rejected):
    """The object has no bytes, so there is no first one."""

    code = "empty_object"


@dataclass(frozen=True)
class UploadForm:
    """A form that a browser sends with the file as its last field, `file`: where to, and the fields before it."""

    url: str
    fields: dict[str, str]


@dataclass(frozen=True)
class ListedObject:
    """An object as a list shows it. `size` is in bytes."""

    key: str
    size: int
    changed_at: datetime


def tenant_prefix(tenant_id: str, *kinds: str) -> str:
    """Return the beginning of the keys of a tenant's objects, all or those of a kind. Raises ValueError for no id."""
    begin = TENANT_OBJECTS.format(tenant=keys.tenant(tenant_id))
    return begin + "".join(f"{_checked(kind)}/" for kind in kinds)


def tenant_key(tenant_id: str, kind: str, name: str) -> str:
    """Return the key of a tenant's object. Raises ValueError for a name with other signs than letters, digits and
    `._-`."""
    return tenant_prefix(tenant_id, kind) + _checked(name)


def _checked(name: str) -> str:
    if not _NAME.match(name) or not name.strip("."):
        raise ValueError("the name of an object has letters, digits, dots, dashes and underscores")
    return name


class ObjectStore:
    """The objects as one role may use them, for one tenant or for none.

    Every method raises Unavailable, Throttled, Rejected, and IsolationError for what the role was not granted or is
    another tenant's.
    """

    def __init__(self, role: Role, tenant_id: str | None = None) -> None:
        self._role: Role = role
        self._tenant_id = keys.tenant(tenant_id) if tenant_id is not None else None

    def put(
        self,
        key: str,
        body: bytes,
        *,
        content_type: str = "application/octet-stream",
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write an object in place of the stored one, with a few short ASCII texts about it (2 KB at most)."""
        self._call("PutObject", Key=key, Body=body, ContentType=content_type, Metadata=dict(about or {}))

    def get(self, key: str, *, most: int) -> bytes:
        """Read an object whole. Raises NotFound, and TooLarge for one of more than `most` bytes, which is not read."""
        return self.get_with_about(key, most=most)[0]

    def get_with_about(self, key: str, *, most: int) -> tuple[bytes, dict[str, str]]:
        """Read an object whole, and the texts that it was stored with. Raises as `get` does."""
        answer = self._call("GetObject", Key=key)
        body = answer["Body"]
        with _translated("GetObject"):
            if answer["ContentLength"] > most:
                body.close()
                raise TooLarge(f"This has more than {most // 1_000_000} MB.")
            content: bytes = body.read()
        return content, dict(answer["Metadata"])

    def beginning(self, key: str, *, most: int) -> tuple[bytes, int]:
        """Read the first `most` bytes of an object, and its size: one request. Raises NotFound."""
        try:
            answer = self._call("GetObject", Key=key, Range=f"bytes=0-{most - 1}")
        except EmptyObject:
            return b"", 0
        with _translated("GetObject"):
            content: bytes = answer["Body"].read()
        _, _, size = answer.get("ContentRange", "").rpartition("/")
        return content, int(size or answer["ContentLength"])

    def pieces(self, key: str) -> Iterator[bytes]:
        """Read an object piece by piece, of 64 KB each. Raises NotFound before the first."""
        body = self._call("GetObject", Key=key)["Body"]

        def read() -> Iterator[bytes]:
            with closing(body):
                while True:
                    with _translated("GetObject"):
                        piece: bytes = body.read(_PIECE)
                    if not piece:
                        return
                    yield piece

        return read()

    def copy(self, source: str, key: str, *, content_type: str, tags: Mapping[str, str]) -> None:
        """Copy an object to another key, within the bucket and without its tags. Raises NotFound."""
        self._call(
            "CopyObject",
            Key=key,
            CopySource=f"{settings.MAIL_BUCKET}/{source}",
            ContentType=content_type,
            MetadataDirective="REPLACE",
            Tagging=urlencode(tags),
            TaggingDirective="REPLACE",
        )

    def tags(self, key: str) -> dict[str, str]:
        """Return the tags of an object. Raises NotFound."""
        return {tag["Key"]: tag["Value"] for tag in self._call("GetObjectTagging", Key=key)["TagSet"]}

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Replace the tags of an object. Raises NotFound."""
        told = [{"Key": name, "Value": value} for name, value in tags.items()]
        self._call("PutObjectTagging", Key=key, Tagging={"TagSet": told})

    def upload_form(
        self, key: str, *, content_type: str, size: int, seconds: int, tags: Mapping[str, str]
    ) -> UploadForm:
        """Sign a form by which a browser puts one object of exactly this key, type and size. Nothing is sent.

        The form is good for so many seconds, and for as often as it is sent in them.
        """
        connection = _connection(self._role)
        told = "".join(f"<Tag><Key>{escape(n)}</Key><Value>{escape(v)}</Value></Tag>" for n, v in tags.items())
        fields = {
            "key": key,
            "Content-Type": content_type,
            "tagging": f"<Tagging><TagSet>{told}</TagSet></Tagging>",
            "success_action_status": "204",
        }
        conditions = [
            {"bucket": settings.MAIL_BUCKET},
            ["content-length-range", size, size],
            *({name: value} for name, value in fields.items()),
        ]
        with self._acting():
            connection.check("PutObject", {"Bucket": settings.MAIL_BUCKET, "Key": key})
            connection.check("PutObjectTagging", {"Bucket": settings.MAIL_BUCKET, "Key": key})
            signer = S3PostPresigner(connection.client._request_signer)
            request = {"method": "POST", "url": bucket_url(), "body": b"", "headers": {}, "context": {}}
            form = signer.generate_presigned_post(request, fields, conditions, seconds)
        return UploadForm(form["url"], form["fields"])

    def download_url(self, key: str, *, name: str, seconds: int, content_type: str = "") -> str:
        """Sign an address at which a browser finds an object, which it saves by this name and does not show.

        With a `content_type`, which has to be that of a picture of ours, it may show it. Nothing is sent.
        """
        how = "inline" if content_type else "attachment"
        params = {
            "Bucket": settings.MAIL_BUCKET,
            "Key": key,
            "ResponseContentDisposition": content_disposition_header(how == "attachment", name) or how,
            "ResponseContentType": content_type or "application/octet-stream",
            "ResponseCacheControl": "private, no-store",
        }
        with self._acting():
            client = _connection(self._role).client
            url: str = client.generate_presigned_url("get_object", Params=params, ExpiresIn=seconds)
        return url

    def size(self, key: str) -> int | None:
        """Return the size of an object in bytes, None where there is none: one request."""
        try:
            return int(self._call("HeadObject", Key=key)["ContentLength"])
        except NotFound:
            return None

    def about(self, key: str) -> dict[str, str]:
        """Return the texts that are kept beside an object: one request. Raises NotFound."""
        return dict(self._call("HeadObject", Key=key).get("Metadata", {}))

    def delete(self, key: str) -> None:
        """Delete an object, if there is one."""
        self._call("DeleteObject", Key=key)

    def list(self, prefix: str, *, page: int = 1000) -> Iterator[ListedObject]:
        """List the objects whose keys begin so, by key, page by page as they are taken."""
        request: dict[str, Any] = {"Prefix": prefix, "MaxKeys": page}
        while True:
            answer = self._call("ListObjectsV2", **request)
            for found in answer.get("Contents", ()):
                yield ListedObject(found["Key"], int(found["Size"]), found["LastModified"])
            if not answer.get("IsTruncated"):
                return
            request["ContinuationToken"] = answer["NextContinuationToken"]

    def _call(self, operation: str, **params: Any) -> dict[str, Any]:
        with self._acting(), _translated(operation):
            answer: dict[str, Any] = _connection(self._role).client._make_api_call(
                operation, {"Bucket": settings.MAIL_BUCKET, **params}
            )
            return answer

    def _acting(self) -> AbstractContextManager[None]:
        return guard.acting_for(self._tenant_id) if self._tenant_id is not None else nullcontext()


def bucket_url() -> str:
    """Return the address of the bucket, without a slash at its end: where browsers send files to."""
    if settings.S3_ENDPOINT_URL:
        return f"{settings.S3_ENDPOINT_URL.rstrip('/')}/{settings.MAIL_BUCKET}"
    return f"https://{settings.MAIL_BUCKET}.s3.{settings.AWS_REGION}.amazonaws.com"


class _Connection:
    def __init__(self, role: Role) -> None:
        self._role: Role = role

    @cached_property
    def check(self) -> object_guard.Check:
        """Refuse what the role was not granted, as its guarded client does."""
        return object_guard.check_of(self._role, settings.MAIL_BUCKET)

    @cached_property
    def client(self) -> Any:
        session = aws_session.new_session(settings.S3_ENDPOINT_URL)
        if self._role == "tenant" and settings.TENANT_ROLE_ARN:
            sts = aws_session.client("sts", settings.AWS_REGION, settings.STS_ENDPOINT_URL)
            source = credentials.TenantCredentials(credentials.assume_with(sts, settings.TENANT_ROLE_ARN))
            session._credentials = credentials.ContextCredentials(source, guard.current_tenant)
        # A letter is sent at once: to ask first costs a round trip, and a second with servers that do not know that.
        session.unregister("before-call.s3", add_expect_header)
        client = session.create_client(
            "s3",
            region_name=settings.AWS_REGION,
            endpoint_url=settings.S3_ENDPOINT_URL or None,
            config=botocore.config.Config(
                parameter_validation=False,
                connect_timeout=settings.DYNAMODB_CONNECT_TIMEOUT,
                read_timeout=max(_READ_SECONDS, settings.DYNAMODB_READ_TIMEOUT),
                max_pool_connections=_POOL,
                retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                signature_version="s3v4",
                s3={"addressing_style": "path" if settings.S3_ENDPOINT_URL else "virtual"},
            ),
        )
        if settings.DYNAMODB_GUARD:
            object_guard.attach(client, self.check)
        return client


@cache
def _connection(role: Role) -> _Connection:
    return _Connection(role)


def reset() -> None:
    """Forget all clients, for tests that change the endpoint, and in a forked child."""
    _connection.cache_clear()


os.register_at_fork(after_in_child=reset)


def create_bucket() -> bool:
    """Create the bucket where there is none, and return whether it is new. On AWS the stack does that, and no role
    may."""
    client = aws_session.client("s3", settings.AWS_REGION, settings.S3_ENDPOINT_URL, s3={"addressing_style": "path"})
    with _translated("CreateBucket"):
        if any(bucket["Name"] == settings.MAIL_BUCKET for bucket in client.list_buckets()["Buckets"]):
            return False
        where = {"LocationConstraint": settings.AWS_REGION}
        client.create_bucket(Bucket=settings.MAIL_BUCKET, CreateBucketConfiguration=where)
    return True


@contextmanager
def _translated(operation: str) -> Iterator[None]:
    """Raise the error of ours that stands for a library's."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        ours = _translate(error, operation)
        if ours is None:
            raise
        raise ours from error


def _translate(error: Exception, operation: str) -> PortalError | None:
    if isinstance(error, ClientError):
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code == "InvalidRange":
            return EmptyObject("The object has no bytes.")
        if code in _MISSING:
            return NotFound("There is no such object.")
        if code in _THROTTLES:
            return Throttled("The store of objects is busy.")
        if code == "NoSuchBucket" or status >= 500:
            return Unavailable(f"The store of objects could not answer {operation}.")
        return Rejected(f"The store of objects refuses {operation}: {code}.")
    if isinstance(error, ReadTimeoutError):
        return Unavailable("The store of objects did not answer in time.")
    if isinstance(error, BotoConnectionError | HTTPClientError | ResponseParserError):
        return Unavailable("The store of objects cannot be reached.")
    return None
