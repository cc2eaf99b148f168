"""Create, upgrade and remove a stack: check the account, show the changes, ask, wait with progress.

Sources: AWS, "Update CloudFormation stacks using change sets", "DescribeStackEvents", "Import existing resources".
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from portal.errors import Conflict, Invalid

CAPABILITIES: Final = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
# A stack that loses one of these loses data, or the keys to it.
DATA: Final = ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret", "AWS::KMS::Key")
AWS_ERRORS: Final = (BotoCoreError, ClientError)
_UNFINISHED: Final = "_IN_PROGRESS"
_SECONDS: Final = 3.0  # between two looks
_NOTHING: Final = ("didn't contain changes", "No updates are to be performed")


class Console(Protocol):
    """The terminal of an operator, or a test that stands for it."""

    def say(self, line: str) -> None: ...

    def agrees(self, question: str, answer: str) -> bool:
        """Ask, and tell whether exactly this was answered."""
        ...


@dataclass
class StackChange:
    action: str  # Add, Modify, Remove, Import
    name: str
    kind: str
    replaced: bool

    @property
    def loses_data(self) -> bool:
        return self.kind in DATA and (self.action == "Remove" or self.replaced)


@dataclass
class StackControl:
    """A stack by its name, in the account and region of a session."""

    name: str
    session: boto3.Session
    console: Console
    endpoint_url: str | None = None
    sleep: Callable[[float], None] = time.sleep
    _clients: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def opened(cls, name: str, region: str | None, console: Console) -> StackControl:
        """Return a stack with the credentials, and without a region that of, the operator's AWS profile."""
        session = boto3.Session(region_name=region or None)
        if not session.region_name:
            raise Invalid("Name the region: REGION=eu-central-1.")
        return cls(name, session, console)

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self.session.client(service, endpoint_url=self.endpoint_url)
        return self._clients[service]

    @property
    def region(self) -> str:
        return str(self.session.region_name)

    def account(self) -> str:
        identity = self.client("sts").get_caller_identity()
        self.console.say(f"Account {identity['Account']}, region {self.region}, as {identity['Arn']}")
        account: str = identity["Account"]
        return account

    def found(self) -> dict[str, Any] | None:
        """Return the stack as CloudFormation describes it. One that was only reviewed is none."""
        try:
            (stack,) = self.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        except ClientError as error:
            if "does not exist" in str(error):
                return None
            raise
        return None if stack["StackStatus"] in ("REVIEW_IN_PROGRESS", "DELETE_COMPLETE") else stack

    def outputs(self) -> dict[str, str]:
        """Return the outputs of the stack. Raises Invalid where there is none."""
        stack = self.found()
        if stack is None:
            raise Invalid(f"There is no stack {self.name} in {self.region}.")
        return {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", [])}

    def parameters(self) -> dict[str, str]:
        stack = self.found() or {}
        return {one["ParameterKey"]: one["ParameterValue"] for one in stack.get("Parameters", [])}

    # --- the template ---

    def uploaded(self, template: str, account: str) -> str:
        """Put a template into the account's bucket for them, which is made if need be; its address."""
        s3, bucket = self.client("s3"), f"pooldesk-templates-{account}-{self.region}"
        try:
            s3.head_bucket(Bucket=bucket, ExpectedBucketOwner=account)
        except ClientError:
            elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": self.region}}
            s3.create_bucket(Bucket=bucket, **(elsewhere if self.region != "us-east-1" else {}))
            closed = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
            s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=dict.fromkeys(closed, True))
            self.console.say(f"Made the bucket {bucket} for templates.")
        body = template.encode()
        key = f"{self.name}/{hashlib.sha256(body).hexdigest()[:16]}.json"
        s3.put_object(Bucket=bucket, Key=key, Body=body)
        suffix = "amazonaws.com.cn" if self.region.startswith("cn-") else "amazonaws.com"
        host = self.endpoint_url or f"https://s3.{self.region}.{suffix}"
        return f"{host}/{bucket}/{key}"

    # --- changes ---

    def change_set(self, template_url: str, wanted: dict[str, str], known: set[str]) -> list[StackChange]:
        """Let CloudFormation work out the changes. Parameters that are not wanted anew keep their values.

        Returns none if nothing changes. Raises Conflict with CloudFormation's reason where it refuses.
        """
        stack = self.found()
        if stack and stack["StackStatus"] in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED"):
            raise Conflict(
                f"The first creation of {self.name} failed, and nothing else can be done with it. Delete it and its "
                f"empty tables with `make teardown STACK={self.name} DELETE_DATA=1`, then deploy again."
            )
        if stack and stack["StackStatus"].endswith(_UNFINISHED):
            raise Conflict(f"{self.name} is being changed now ({stack['StackStatus']}). Wait until that is over.")
        had = {one["ParameterKey"] for one in stack["Parameters"]} & known if stack else set()
        given = [{"ParameterKey": name, "ParameterValue": value} for name, value in wanted.items()]
        kept = [{"ParameterKey": name, "UsePreviousValue": True} for name in sorted(had - wanted.keys())]
        cloudformation, change_set = self.client("cloudformation"), f"pooldesk-{secrets.token_hex(6)}"
        try:
            cloudformation.create_change_set(
                StackName=self.name,
                ChangeSetName=change_set,
                ChangeSetType="UPDATE" if stack else "CREATE",
                TemplateURL=template_url,
                Capabilities=CAPABILITIES,
                Parameters=given + kept,
            )
        except ClientError as error:
            raise Conflict(f"CloudFormation refuses it: {error.response['Error']['Message']}") from error
        self._change_set = change_set
        while True:
            described = cloudformation.describe_change_set(StackName=self.name, ChangeSetName=change_set)
            if described["Status"] in ("CREATE_COMPLETE", "FAILED"):
                break
            self.sleep(_SECONDS)
        if described["Status"] == "FAILED":
            self.discard()
            reason = described.get("StatusReason", "")
            if any(text in reason for text in _NOTHING):
                return []
            raise Conflict(f"CloudFormation refuses it: {reason}")
        return list(self._changes())

    def _changes(self) -> Iterator[StackChange]:
        pages = self.client("cloudformation").get_paginator("describe_change_set")
        for page in pages.paginate(StackName=self.name, ChangeSetName=self._change_set):
            for one in page["Changes"]:
                change = one["ResourceChange"]
                replaced = change.get("Replacement") == "True"
                yield StackChange(change["Action"], change["LogicalResourceId"], change["ResourceType"], replaced)

    def discard(self) -> None:
        """Forget the change set that was made last. A stack that has nothing but that goes with it."""
        cloudformation = self.client("cloudformation")
        cloudformation.delete_change_set(StackName=self.name, ChangeSetName=self._change_set)
        if self.found() is None:
            cloudformation.delete_stack(StackName=self.name)

    def carry_out(self) -> None:
        """Execute the change set that was made last, and wait with progress. Raises Conflict if it fails."""
        begun = self._last_event()
        cloudformation = self.client("cloudformation")
        cloudformation.execute_change_set(StackName=self.name, ChangeSetName=self._change_set)
        status = self._watched(begun)
        if status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            raise Conflict(f"{self.name} was not changed: {status}. The lines with FAILED above have the reasons.")

    def _watched(self, seen: str) -> str:
        """Say each event until the stack settles; the status that it ends with."""
        while True:
            for event in self._events_since(seen):
                seen = event["EventId"]
                reason = f" {event['ResourceStatusReason']}" if "FAILED" in event["ResourceStatus"] else ""
                at = event["Timestamp"].strftime("%H:%M:%S")
                if reason or event["ResourceStatus"].endswith("_COMPLETE"):
                    self.console.say(f"{at} {event['ResourceStatus']:<16} {event['LogicalResourceId']}{reason}")
            try:
                (stack,) = self.client("cloudformation").describe_stacks(StackName=self._id or self.name)["Stacks"]
            except ClientError as error:
                if "does not exist" in str(error):
                    return "DELETE_COMPLETE"
                raise
            status: str = stack["StackStatus"]
            if not status.endswith(_UNFINISHED):
                return status
            self.sleep(_SECONDS)

    _id: str = ""

    def _last_event(self) -> str:
        for event in self._newest_events():
            return str(event["EventId"])
        return ""

    def _events_since(self, seen: str) -> list[dict[str, Any]]:
        """Return the events after this one, oldest first."""
        found: list[dict[str, Any]] = []
        for event in self._newest_events():
            if event["EventId"] == seen:
                break
            found.append(event)
        return found[::-1]

    def _newest_events(self) -> Iterator[dict[str, Any]]:
        try:
            pages = self.client("cloudformation").get_paginator("describe_stack_events")
            for page in pages.paginate(StackName=self._id or self.name):
                yield from page["StackEvents"]
        except ClientError as error:
            if "does not exist" not in str(error):
                raise

    def described_table(self, name: str) -> dict[str, Any] | None:
        """Return DynamoDB's description of a table, None where there is no such table."""
        dynamodb = self.client("dynamodb")
        try:
            table: dict[str, Any] = dynamodb.describe_table(TableName=name)["Table"]
        except dynamodb.exceptions.ResourceNotFoundException:
            return None
        return table

    # --- removal ---

    def data(self) -> dict[str, list[str]]:
        """Return what holds data in this stack, by kind: physical ids."""
        found: dict[str, list[str]] = {kind: [] for kind in DATA}
        pages = self.client("cloudformation").get_paginator("list_stack_resources")
        for page in pages.paginate(StackName=self.name):
            for one in page["StackResourceSummaries"]:
                if one["ResourceType"] in found and one["ResourceStatus"] != "DELETE_COMPLETE":
                    found[one["ResourceType"]].append(one["PhysicalResourceId"])
        return found

    def remove(self) -> None:
        """Delete the stack, and wait with progress. Its template says which data stays. Raises Conflict if it fails."""
        stack = self.found()
        if stack is None:
            raise Invalid(f"There is no stack {self.name} in {self.region}.")
        self._id = stack["StackId"]
        cloudformation, begun = self.client("cloudformation"), self._last_event()
        cloudformation.update_termination_protection(StackName=self.name, EnableTerminationProtection=False)
        self._unprotect_balancer()
        cloudformation.delete_stack(StackName=self.name)
        status = self._watched(begun)
        if status != "DELETE_COMPLETE":
            raise Conflict(f"{self.name} was not deleted whole: {status}. The lines with FAILED have the reasons.")

    def _unprotect_balancer(self) -> None:
        pages = self.client("cloudformation").get_paginator("list_stack_resources")
        for page in pages.paginate(StackName=self.name):
            for one in page["StackResourceSummaries"]:
                if one["ResourceType"] == "AWS::ElasticLoadBalancingV2::LoadBalancer":
                    off = [{"Key": "deletion_protection.enabled", "Value": "false"}]
                    self.client("elbv2").modify_load_balancer_attributes(
                        LoadBalancerArn=one["PhysicalResourceId"], Attributes=off
                    )

    def delete_data(self, data: dict[str, list[str]], prefix: str) -> None:
        """Delete what a removed stack has left, also the tables that the portal made for single desks."""
        dynamodb = self.client("dynamodb")
        pages = dynamodb.get_paginator("list_tables").paginate()
        tables = [name for page in pages for name in page["TableNames"] if name.startswith(f"{prefix}.")]
        for table in tables:
            if dynamodb.describe_table(TableName=table)["Table"].get("DeletionProtectionEnabled"):
                dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
                # A table that is being changed cannot be deleted.
                dynamodb.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 2, "MaxAttempts": 150})
            dynamodb.delete_table(TableName=table)
            self.console.say(f"Deleted the table {table}.")
        for bucket in data["AWS::S3::Bucket"]:
            self._empty(bucket)
            self.client("s3").delete_bucket(Bucket=bucket)
            self.console.say(f"Deleted the bucket {bucket}.")
        for secret in data["AWS::SecretsManager::Secret"]:
            # At once: with a time for recovery its name would be taken for a week.
            self.client("secretsmanager").delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)
            self.console.say(f"Deleted the secret {secret}.")
        for key in data["AWS::KMS::Key"]:
            self.client("kms").schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
            self.console.say(f"The key {key} goes in 7 days.")

    def _empty(self, bucket: str) -> None:
        s3 = self.client("s3")
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            if keys := [{"Key": one["Key"]} for one in page.get("Contents", [])]:
                s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})


def summary(changes: list[StackChange]) -> Iterator[str]:
    """Describe changes: what comes, by kind; what is changed, replaced and removed, by name."""
    added = Counter(change.kind for change in changes if change.action in ("Add", "Import"))
    if added:
        yield f"New: {added.total()} resources"
        yield from (f"  {count:4} {kind}" for kind, count in sorted(added.items()))
    for title, of in (
        ("Changed", [one for one in changes if one.action == "Modify" and not one.replaced]),
        ("Replaced", [one for one in changes if one.replaced]),
        ("Removed", [one for one in changes if one.action == "Remove"]),
    ):
        if of:
            yield f"{title}: {len(of)} resources"
            yield from (f"       {one.name} ({one.kind})" for one in of)
