"""Declare the scanner of files: Amazon GuardDuty Malware Protection for S3, which tags each object that it has seen.

The parameter `FileScanner` asks for it. A plan names beginnings of keys and no patterns, so it hears of all objects of
tenants. Its role may read only the files of tickets, so each file is scanned and paid for once: not its upload, which
is the same content, nor previews and letters. For those the scanner reports ACCESS_DENIED.

Sources: AWS, "AWS::GuardDuty::MalwareProtectionPlan", "Create or update IAM role policy" and "Monitoring S3 object scan
status" (Malware Protection for S3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from portal.deployment.object_bucket import SCANNER
from portal.deployment.parts import BUCKET, NOT_GIVEN, StackPart, arn, declare, document
from portal.deployment.template import sub
from portal.schema.registry import Table
from tickets.attachments.scanning import GUARDDUTY
from tickets.attachments.stored import KIND

Json = dict[str, Any]

_ROLE, _WANTED = "FileScannerRole", "HasFileScanner"
_PREFIX: Final = "tenant/"
_PROOF: Final = "malware-protection-resource-validation-object"
_RULE: Final = (
    "arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:rule/"
    "DO-NOT-DELETE-AmazonGuardDutyMalwareProtectionS3*"
)


def _resources(logical_id: Callable[[Table], str], roles: dict[str, str]) -> Json:
    plan = {
        "Role": arn(_ROLE),
        "ProtectedResource": {"S3Bucket": {"BucketName": {"Ref": BUCKET}, "ObjectPrefixes": [_PREFIX]}},
        "Actions": {"Tagging": {"Status": "ENABLED"}},
    }
    return {
        _ROLE: {"Type": "AWS::IAM::Role", "Condition": _WANTED, "Properties": _role()},
        "FileScannerPlan": {
            "Type": "AWS::GuardDuty::MalwareProtectionPlan",
            "Condition": _WANTED,
            "Properties": plan,
        },
    }


def _role() -> Json:
    service = "malware-protection-plan.guardduty.amazonaws.com"
    ours = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    trust = _statement("GuardDuty", ["sts:AssumeRole"], Principal={"Service": service}, Condition=ours)
    managed = {"StringLike": {"events:ManagedBy": service}}
    statements = [
        _statement(
            "Rule",
            ["events:PutRule", "events:DeleteRule", "events:PutTargets", "events:RemoveTargets"],
            Resource=sub(_RULE),
            Condition=managed,
        ),
        _statement("LookAtRule", ["events:DescribeRule", "events:ListTargetsByRule"], Resource=sub(_RULE)),
        _statement("Notification", ["s3:PutBucketNotification", "s3:GetBucketNotification"], Resource=arn(BUCKET)),
        _statement("List", ["s3:ListBucket"], Resource=arn(BUCKET)),
        _statement(
            "ProveOwnership", ["s3:PutObject"], Resource=_objects("malware-protection-resource-validation-object")
        ),
        _statement(
            "ReadAndTag",
            [
                "s3:GetObject",
                "s3:GetObjectVersion",
                "s3:GetObjectTagging",
                "s3:GetObjectVersionTagging",
                "s3:PutObjectTagging",
                "s3:PutObjectVersionTagging",
            ],
            Resource=_objects(f"{_PREFIX}*/{KIND}/*"),
        ),
    ]
    return {
        "AssumeRolePolicyDocument": document(trust),
        "Policies": [{"PolicyName": "ScanFiles", "PolicyDocument": document(*statements)}],
    }


def _statement(sid: str, actions: list[str], **more: Any) -> Json:
    return {"Sid": sid, "Effect": "Allow", "Action": actions, **more}


def _objects(key: str) -> Json:
    return sub(f"arn:${{AWS::Partition}}:s3:::${{{BUCKET}}}/{key}")


declare(
    StackPart(
        "file scanner",
        resources=_resources,
        parameters={
            SCANNER: {
                "Type": "String",
                "Description": "FILE_SCANNER of the portal: the scanner of files, which costs by the gigabyte",
                "AllowedValues": [NOT_GIVEN, GUARDDUTY],
                "Default": NOT_GIVEN,
            }
        },
        conditions={_WANTED: {"Fn::Equals": [{"Ref": SCANNER}, GUARDDUTY]}},
    )
)
