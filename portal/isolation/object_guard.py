"""Hold each request about objects against its role's policy before it is sent, as `guard.py` does for items.

The key of a tenant's object is `tenant/<tenant id>/<kind>/<name>`. A key that is written in another way, or that some
client might read in another way, is refused: nothing of ours sends one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from portal.isolation import guard, policies
from portal.isolation.expressions import NotUnderstood
from portal.schema.registry import Role

# No empty part, no dots alone, and nothing that S3 or a proxy takes for something else.
_KEY: Final = re.compile(r"(?!\.+(?:/|\Z))[A-Za-z0-9._=@+-]{1,255}(?:/(?!\.+(?:/|\Z))[A-Za-z0-9._=@+-]{1,255}){1,7}\Z")
_PREFIX: Final = re.compile(r"(?:[A-Za-z0-9_-]{1,255}/)+\Z")
_OF_TENANT: Final = re.compile(r"tenant/([0-9a-f]{32})/")
_OVERRIDES: Final = ("ResponseContentDisposition", "ResponseContentType", "ResponseCacheControl")
_READ_BY_COPY: Final = ("GetObject",)  # what a copy needs of its source
_COPYING: Final = ("ContentType", "MetadataDirective", "Tagging", "TaggingDirective")
# The operations that our code sends, each with the action of IAM and the parameters that it may have.
_OPERATIONS: Final = {
    "GetObject": ("GetObject", {"Bucket", "Key", "Range", *_OVERRIDES}),
    "HeadObject": ("GetObject", {"Bucket", "Key"}),
    "PutObject": ("PutObject", {"Bucket", "Key", "Body", "ContentType", "Metadata"}),
    "CopyObject": ("PutObject", {"Bucket", "Key", "CopySource", *_COPYING}),
    "DeleteObject": ("DeleteObject", {"Bucket", "Key"}),
    "GetObjectTagging": ("GetObjectTagging", {"Bucket", "Key"}),
    "PutObjectTagging": ("PutObjectTagging", {"Bucket", "Key", "Tagging"}),
    "ListObjectsV2": ("ListBucket", {"Bucket", "Prefix", "MaxKeys", "ContinuationToken", "EncodingType"}),
}


Check = Callable[[str, dict[str, Any]], None]


def check_of(role: Role, bucket: str) -> Check:
    """Return the check of a role's requests. It is given the operation and its parameters, and raises IsolationError.

    A form that a browser uploads by is signed without a request, so whoever signs one calls this as for PutObject.
    """
    policy = policies.Policy(policies.document(role))
    return lambda operation, params: refuse_foreign_object(policy, role, bucket, operation, params)


def attach(client: Any, check: Check) -> None:
    """Guard every request of this client of Amazon S3, and every address that it signs."""

    def look(params: dict[str, Any], model: Any, **_: Any) -> None:
        check(model.name, params)

    client.meta.events.register_last("before-parameter-build", look)


def refuse_foreign_object(
    policy: policies.Policy, role: Role, bucket: str, operation: str, params: dict[str, Any]
) -> None:
    """Raise IsolationError unless the policy allows this request, and its key is that of the tenant acted for or of
    none."""
    with guard.refusals(operation, {"TableName": f"objects of {bucket}"}):
        action, known = _OPERATIONS.get(operation, ("", set()))
        if not action or not params.keys() <= known:
            raise NotUnderstood("an operation or a parameter that is not understood")
        if params["Bucket"] != bucket:
            raise NotUnderstood("another bucket")
        if operation == "CopyObject":
            of, _, source = str(params["CopySource"]).partition("/")
            for permission in _READ_BY_COPY:
                refuse_foreign_object(policy, role, bucket, permission, {"Bucket": of, "Key": source})
            if "Tagging" in params:
                refuse_foreign_object(
                    policy, role, bucket, "PutObjectTagging", {"Bucket": bucket, "Key": params["Key"]}
                )
        key, form = (params["Prefix"], _PREFIX) if action == "ListBucket" else (params["Key"], _KEY)
        if not form.match(key):
            raise NotUnderstood("a key that is not understood")
        found = _OF_TENANT.match(key)
        tenant = guard.current_tenant() if found or role == "tenant" else None
        if found and found[1] != tenant:
            raise NotUnderstood("a key that is not the tenant's")
        if not policy.allows(_request(role, action, key, tenant)):
            raise NotUnderstood(f"{action} is not allowed")


def _request(role: Role, action: str, key: str, tenant: str | None) -> policies.Request:
    tag = tenant if role == "tenant" else None
    if action == "ListBucket":
        return policies.Request(f"s3:{action}", policies.object_arn(), (key,), tag)
    return policies.Request(f"s3:{action}", policies.object_arn(key), (), tag)
