"""The stack's bucket is closed, keeps no upload that no ticket has, and has its files scanned where that is wished."""

from __future__ import annotations

from typing import Any

from portal.deployment import template
from portal.deployment.object_bucket import UNATTACHED
from tickets.attachments import attachments

RESOURCES: dict[str, Any] = template.template()["Resources"]
BUCKET = RESOURCES["ObjectBucket"]["Properties"]


def test_an_upload_that_no_ticket_has_goes_after_a_day_by_a_rule_of_the_bucket() -> None:
    """ministack runs no lifecycle rule; Amazon S3 does, once a day."""
    (rule,) = [one for one in BUCKET["LifecycleConfiguration"]["Rules"] if one["Id"] == "Unattached"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", 1)
    assert rule["TagFilters"] == [{"Key": UNATTACHED[0], "Value": UNATTACHED[1]}]
    assert dict([UNATTACHED]) == attachments.UNATTACHED
    assert attachments.ATTACHED != attachments.UNATTACHED


def test_the_bucket_is_closed_to_the_public_and_to_connections_without_tls() -> None:
    assert set(BUCKET["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(BUCKET["PublicAccessBlockConfiguration"]) == 4
    assert BUCKET["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    denied = [
        one
        for one in RESOURCES["ObjectBucketPolicy"]["Properties"]["PolicyDocument"]["Statement"]
        if one["Effect"] == "Deny"
    ]
    assert [(one["Principal"], one["Condition"]) for one in denied] == [
        ("*", {"Bool": {"aws:SecureTransport": "false"}})
    ]


def test_a_scanner_looks_at_the_objects_of_tenants_and_tags_them_where_it_is_wished() -> None:
    plan = RESOURCES["FileScannerPlan"]
    assert plan["Condition"] == "HasFileScanner"
    assert plan["Properties"]["Actions"] == {"Tagging": {"Status": "ENABLED"}}
    assert plan["Properties"]["ProtectedResource"]["S3Bucket"]["ObjectPrefixes"] == ["tenant/"]
    (document,) = [one["PolicyDocument"] for one in RESOURCES["FileScannerRole"]["Properties"]["Policies"]]
    (reads,) = [one for one in document["Statement"] if "s3:GetObject" in one["Action"]]
    resource = reads["Resource"]["Fn::Sub"]
    assert resource.endswith("/tenant/*/files/*"), "each file is scanned once, and not its upload"
    for function in ("DeliveryFunction", "LettersFunction"):
        told = RESOURCES[function]["Properties"]["Environment"]["Variables"]
        assert told["FILE_SCANNER"] == {"Ref": "FileScanner"}
