"""Declare the bucket of objects: letters as they came, and files of tickets.

Browsers send files to it from the portal's pages, which is what CORS is for: `PortalOrigin` says where those come from.
A file that belongs to no ticket carries a tag, by which it goes after a day.

Sources: AWS, "Elements of a CORS configuration", "Lifecycle configuration elements" (filters by tag), "Blocking public
access to your Amazon S3 storage".
"""

from __future__ import annotations

from typing import Any, Final

from portal.deployment import parts
from portal.deployment.parts import text_parameter

Json = dict[str, Any]

ORIGIN: Final = "PortalOrigin"
PARAMETER: Final[Json] = {
    ORIGIN: text_parameter(
        "The origin of the portal's pages, from which browsers send files, as https://desk.example.com",
        "https://localhost",
        AllowedPattern="https?://[A-Za-z0-9.:-]+",
    )
}
SCANNER: Final = "FileScanner"  # the parameter that says who scans files
UNATTACHED: Final = ("pooldesk", "unattached")  # the tag of a file that no ticket shows


_expiring: Final[dict[str, int]] = {}


def expire(prefix: str, *, days: int) -> None:
    """Let the objects whose keys begin so go after some days."""
    _expiring[prefix] = days


def resources() -> Json:
    """Return the bucket. It outlives the stack, as the tables do. It keeps no versions: what is deleted has to be
    gone."""
    encryption = {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    closed = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    tag = dict(zip(("Key", "Value"), UNATTACHED, strict=True))
    cors = {
        "AllowedOrigins": [{"Ref": ORIGIN}],
        "AllowedMethods": ["POST"],
        "AllowedHeaders": ["content-type"],
        "MaxAge": 3600,
    }
    rules = [
        {"Id": "Unattached", "Status": "Enabled", "TagFilters": [tag], "ExpirationInDays": 1},
        {
            "Id": "Unfinished",
            "Status": "Enabled",
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
        },
        *(
            {"Id": prefix.strip("/").title(), "Status": "Enabled", "Prefix": prefix, "ExpirationInDays": days}
            for prefix, days in sorted(_expiring.items())
        ),
    ]
    bucket = {
        "Type": "AWS::S3::Bucket",
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": {
            "BucketEncryption": {"ServerSideEncryptionConfiguration": [encryption]},
            "PublicAccessBlockConfiguration": dict.fromkeys(closed, True),
            "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
            "CorsConfiguration": {"CorsRules": [cors]},
            "LifecycleConfiguration": {"Rules": rules},
        },
    }
    return {parts.BUCKET: bucket}


OUTPUTS: Final[Json] = {
    f"{parts.BUCKET}Name": {"Description": "MAIL_BUCKET of the portal", "Value": {"Ref": parts.BUCKET}}
}
