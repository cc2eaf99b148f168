"""Record every request to the tables with AWS CloudTrail, by any signer: an option of a stack.

The portal's audit trail knows what people do in the portal. Somebody with access to the account reads tables without
it, and only CloudTrail's data events tell who that was. They cost by the request, so they are off unless asked for.

Sources: AWS, "Logging data events" (advanced event selectors), "Amazon S3 bucket policy for CloudTrail".
"""

from __future__ import annotations

from typing import Any, Final

from portal.deployment.parts import document, given, text_parameter

Json = dict[str, Any]

OPTION: Final = "DataEvents"
WANTED: Final = "HasDataEvents"
_OF_STREAMS: Final = "HasDataEventsOfStreams"
_BUCKET, _TRAIL = "DataEventsBucket", "DataEventsTrail"
_DAYS: Final = 365
_KEPT: Final = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
_ACCOUNT: Final = "${AWS::Partition}:{service}:${AWS::Region}:${AWS::AccountId}"
_TABLES: Final = "arn:" + _ACCOUNT.replace("{service}", "dynamodb") + ":table/${TablePrefix}."
_NAME: Final = {"Fn::Join": ["-", {"Fn::Split": [".", {"Ref": "TablePrefix"}]}]}

PARAMETER: Final[Json] = {
    OPTION: text_parameter(
        "Record requests to the tables with CloudTrail, 1 dollar a million; all: of streams too",
        "off",
        AllowedValues=["off", "tables", "all"],
    )
}
CONDITIONS: Final[Json] = {
    WANTED: given(OPTION, "off"),
    _OF_STREAMS: {"Fn::Equals": [{"Ref": OPTION}, "all"]},
}


def resources() -> Json:
    """Return a trail of the data events of all tables with the stack's prefix, and the bucket that it is kept in."""
    declared = {_BUCKET: _bucket(), f"{_BUCKET}Policy": _bucket_policy(), _TRAIL: _trail()}
    return {name: {"Condition": WANTED, **one} for name, one in declared.items()}


def _bucket() -> Json:
    encryption = {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    closed = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    return {
        "Type": "AWS::S3::Bucket",
        **_KEPT,
        "Properties": {
            "BucketEncryption": {"ServerSideEncryptionConfiguration": [encryption]},
            "PublicAccessBlockConfiguration": dict.fromkeys(closed, True),
            "LifecycleConfiguration": {
                "Rules": [{"Id": "Expire", "Status": "Enabled", "ExpirationInDays": _DAYS}],
            },
        },
    }


def _bucket_policy() -> Json:
    trail = {"Fn::Sub": ["arn:" + _ACCOUNT.replace("{service}", "cloudtrail") + ":trail/${Name}", {"Name": _NAME}]}
    statements = [
        _allowed("CloudTrailLooksAtTheBucket", "s3:GetBucketAcl", {"Fn::GetAtt": [_BUCKET, "Arn"]}, trail),
        _allowed("CloudTrailWrites", "s3:PutObject", {"Fn::Sub": f"${{{_BUCKET}.Arn}}/AWSLogs/*"}, trail),
    ]
    return {
        "Type": "AWS::S3::BucketPolicy",
        **_KEPT,
        "Properties": {
            "Bucket": {"Ref": _BUCKET},
            "PolicyDocument": document(*statements),
        },
    }


def _trail() -> Json:
    of_streams = {"Fn::If": [_OF_STREAMS, _selector("Stream"), {"Ref": "AWS::NoValue"}]}
    return {
        "Type": "AWS::CloudTrail::Trail",
        "DependsOn": [f"{_BUCKET}Policy"],
        "Properties": {
            "TrailName": _NAME,
            "S3BucketName": {"Ref": _BUCKET},
            "IsLogging": True,
            "EnableLogFileValidation": True,
            "IsMultiRegionTrail": False,
            "IncludeGlobalServiceEvents": False,
            "AdvancedEventSelectors": [_selector("Table"), of_streams],
        },
    }


def _allowed(sid: str, action: str, resource: Json, trail: Json) -> Json:
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": {"Service": "cloudtrail.amazonaws.com"},
        "Action": action,
        "Resource": resource,
        "Condition": {"StringEquals": {"aws:SourceArn": trail}},
    }


def _selector(kind: str) -> Json:
    return {
        "Name": f"{kind}s of this installation",
        "FieldSelectors": [
            {"Field": "eventCategory", "Equals": ["Data"]},
            {"Field": "resources.type", "Equals": [f"AWS::DynamoDB::{kind}"]},
            {"Field": "resources.ARN", "StartsWith": [{"Fn::Sub": _TABLES}]},
        ],
    }
