"""infra/template.yaml: it is what the code declares, AWS's own linter accepts it, and the portal runs on what it makes.

The embedded engine's CloudFormation creates tables, indexes, streams, roles and policies from the template as it is,
with production's parameters. It silently leaves out encryption, TTL and point-in-time recovery, so those are asserted
on the template; the tables' TTL is then switched on by `create_all`, as on any engine that has none.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import boto3
import pytest
from django.conf import settings
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import override_settings

from portal.deployment import cfn_yaml
from portal.deployment import template as infra
from portal.dynamo import client, provisioning
from portal.engines.endpoint import REGION
from portal.engines.engine_process import Ministack, start_engine
from portal.isolation import policies
from portal.management.commands.infra_template import PATH
from portal.schema import registry
from tests.support.stacks import (
    ACCOUNT,
    COMMITTED,
    PRODUCTION,
    WITH_FUNCTION,
    WITH_IMAGE,
    Json,
    Stack,
    committed,
    read,
    statements_in,
)
from tests.support.world import World
from tickets.ticket.stored import TICKETS

DEVELOPMENT = {"Environment": "dev", "TablePrefix": "Pooldesk.Dev", "Encryption": "aws-managed"}
ROLES = {
    "platform": "WebRole",
    "tenant": "TenantRole",
    "worker": "WorkerRole",
    "delivery": "DeliveryRole",
    "seed": "SeedRole",
    "lifecycle": "LifecycleRole",
}
POLICIES = {
    "platform": ["PlatformPolicy", "PlatformPolicy2", "PlatformPolicy3"],
    "tenant": ["TenantPolicy", "TenantPolicy2", "TenantPolicy3", "TenantPolicy4"],
    "worker": ["WorkerPolicy", "WorkerPolicy2"],
    "delivery": ["DeliveryPolicy"],
    "seed": ["SeedPolicy"],
    "lifecycle": ["LifecyclePolicy", "LifecyclePolicy2", "LifecyclePolicy3"],
}
ACTING = ["WebRole", "SeedRole", "WorkerRole", "DeliveryRole", "LifecycleRole"]  # which act for a tenant
# An attached policy may have 6144 characters and a trust policy 2048, white space not counted, and a role 10 of them
# (AWS, "IAM quotas").
POLICY_CHARACTERS, TRUST_CHARACTERS, POLICIES_OF_A_ROLE = 6144, 2048, 10


@pytest.fixture(scope="module")
def written() -> Json:
    """The committed file, read by the linter's parser: not by the code that wrote it."""
    return committed()


@pytest.fixture(scope="module")
def production(written: Json) -> Stack:
    return Stack(written, **PRODUCTION)


@pytest.fixture(scope="module")
def development(written: Json) -> Stack:
    return Stack(written, **DEVELOPMENT)


def check() -> str:
    """What `infra_template --check` says against the template."""
    said = StringIO()
    try:
        call_command("infra_template", "--check", stderr=said)
    except CommandError as error:
        return f"{said.getvalue()}{error}"
    return ""


# --- the file and the declaration ---


def test_the_committed_template_is_what_the_code_declares() -> None:
    assert check() == ""


def test_the_file_says_what_the_code_declares_to_another_parser_too(written: Json) -> None:
    assert written == infra.template()


def test_a_template_that_is_missing_or_was_edited_by_hand_is_noticed(tmp_path: Path, settings: Any) -> None:
    settings.BASE_DIR = tmp_path
    assert "is not what the code declares" in check()
    (tmp_path / PATH).parent.mkdir()
    (tmp_path / PATH).write_text(COMMITTED.read_text().replace("EnableKeyRotation: true", "EnableKeyRotation: false"))
    said = check()
    assert "-      EnableKeyRotation: false" in said
    assert "manage.py infra_template > infra/template.yaml" in said


def test_a_table_declared_and_not_deployed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._tables, "Tenants.New", registry.Table("Tenants.New", "tenant", "tenant_id"))
    assert "+  TenantsNewTable:" in check()


# AWS, "CloudFormation quotas": bytes of a template in a request, and of one in a bucket.
IN_A_REQUEST, IN_A_BUCKET = 51_200, 1_000_000


def test_the_header_deploys_this_very_file_as_large_as_it_is(written: Json) -> None:
    comments = [line[1:].strip() for line in COMMITTED.read_text().splitlines() if line.startswith("#")]
    begun = comments.index(next(line for line in comments if line.startswith("aws ")))
    ended = next(n for n in range(begun, len(comments)) if not comments[n].endswith("\\"))
    command = " ".join(line.removesuffix("\\") for line in comments[begun : ended + 1])
    words = shlex.split(re.sub("<.*?>", "BUCKET", command))
    assert words[:3] == ["aws", "cloudformation", "deploy"]
    options, overrides = words[3:], words.index("--parameter-overrides")
    given = {name: value for name, value in pairwise(options) if name.startswith("--")}
    assert (settings.BASE_DIR / given["--template-file"]).samefile(COMMITTED)
    assert ("--s3-bucket" in given) == (COMMITTED.stat().st_size > IN_A_REQUEST)
    assert COMMITTED.stat().st_size < IN_A_BUCKET
    named = dict(word.split("=") for word in words[overrides + 1 :])
    assert named.keys() <= written["Parameters"].keys()
    assert "CAPABILITY_AUTO_EXPAND" in words
    assert written["Transform"]


def test_the_template_is_the_same_wherever_it_is_made() -> None:
    here = infra.template()
    with override_settings(AWS_REGION="us-east-1", AWS_ACCOUNT_ID=ACCOUNT, DYNAMODB_TABLE_PREFIX="Elsewhere"):
        assert infra.template() == here


def test_a_policy_on_what_is_no_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    document = {"Version": "2012-10-17", "Statement": [{"Resource": ["arn:aws:s3:::anything"]}]}
    monkeypatch.setattr(policies, "document", lambda role: document)
    with pytest.raises(ValueError, match="no table, queue or object of Pooldesk"):
        infra.template()


TEXTS = ("Null", "yes", "2012-10-17", "1e3", "0x1f", "a: b", "# no", "*", "", "!Ref x", '"so"', "two\nlines", "\u00f6")


@pytest.mark.parametrize("text", TEXTS)
def test_text_stays_text_in_yaml(text: str, tmp_path: Path) -> None:
    path = tmp_path / "any.yaml"
    template = {text or "empty": text, "List": [text], "Pairs": [{text or "empty": text, "n": 1, "yes": True}]}
    path.write_text(cfn_yaml.dump({"Section": template}), encoding="utf-8")
    assert read(path) == {"Section": template}


# --- tables ---


def test_every_declared_table_is_there_and_no_other(production: Stack) -> None:
    made = {r["Properties"]["TableName"] for r in production.resources.values() if r["Type"] == "AWS::DynamoDB::Table"}
    assert made == {f"Pooldesk.Prod.{table.name}" for table in registry.tables()}


def test_keys_indexes_expiry_and_streams_are_the_declared_ones(production: Stack) -> None:
    for table in registry.tables():
        properties = production.properties(infra.logical_id(table))
        assert keys_of(properties) == (table.hash, table.range)
        indexes = properties.get("GlobalSecondaryIndexes", [])
        assert [(i["IndexName"], keys_of(i), i["Projection"]) for i in indexes] == [
            (i.name, (i.hash, i.range), projection(i)) for i in table.indexes
        ]
        used = {table.hash, table.range, *(k for index in indexes for k in keys_of(index))} - {None}
        types = {a["AttributeName"]: a["AttributeType"] for a in properties["AttributeDefinitions"]}
        assert types == dict.fromkeys(used, "S")
        assert properties["BillingMode"] == "PAY_PER_REQUEST"
        ttl = {"AttributeName": table.ttl, "Enabled": True} if table.ttl else None
        assert properties.get("TimeToLiveSpecification") == ttl
        stream = {"StreamViewType": "NEW_AND_OLD_IMAGES"} if table.stream else None
        assert properties.get("StreamSpecification") == stream


def projection(index: registry.Index) -> dict[str, Any]:
    if not index.include:
        return {"ProjectionType": "KEYS_ONLY"}
    return {"ProjectionType": "INCLUDE", "NonKeyAttributes": sorted(index.include)}


def keys_of(holder: Json) -> tuple[str, str | None]:
    by_type = {k["KeyType"]: k["AttributeName"] for k in holder["KeySchema"]}
    return by_type["HASH"], by_type.get("RANGE")


def test_production_keeps_and_protects_every_table_and_development_leaves_nothing_behind(
    production: Stack, development: Stack
) -> None:
    encrypted = {"SSEEnabled": True, "SSEType": "KMS"}
    kinds = (
        (production, "Retain", True, encrypted | {"KMSMasterKeyId": "TableKey.Arn"}),
        (development, "Delete", False, encrypted),
    )
    for stack, policy, protected, encryption in kinds:
        for table in registry.tables():
            resource = stack.resources[infra.logical_id(table)]
            assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == (policy, policy)
            properties = resource["Properties"]
            assert properties["DeletionProtectionEnabled"] is protected
            assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": protected}
            assert properties["SSESpecification"] == encryption


def test_who_names_no_environment_gets_production(written: Json) -> None:
    assert Stack(written).resources["SupportTicketsTable"]["DeletionPolicy"] == "Retain"


def test_the_own_key_is_rotated_kept_and_used_only_through_dynamodb(production: Stack, development: Stack) -> None:
    assert "TableKey" not in development.resources
    assert "TableKeyArn" not in development.outputs
    key = production.resources["TableKey"]
    assert key["DeletionPolicy"] == "Retain"
    assert key["Properties"]["EnableKeyRotation"] is True
    account, roles = key["Properties"]["KeyPolicy"]["Statement"]
    assert account["Principal"] == {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    assert roles["Principal"] == {"AWS": [f"{name}.Arn" for name in ROLES.values()]}
    assert roles["Condition"] == {"StringEquals": {"kms:ViaService": f"dynamodb.{REGION}.amazonaws.com"}}


@pytest.mark.parametrize(("option", "kinds"), [("off", []), ("tables", ["Table"]), ("all", ["Table", "Stream"])])
def test_cloudtrail_records_requests_to_the_tables_where_that_is_asked_for(
    written: Json, option: str, kinds: list[str]
) -> None:
    stack = Stack(written, **PRODUCTION, DataEvents=option)
    trails = [r["Properties"] for r in stack.resources.values() if r["Type"] == "AWS::CloudTrail::Trail"]
    selectors = [selector for trail in trails for selector in trail["AdvancedEventSelectors"] if selector]
    fields = [{f["Field"]: f.get("Equals") or f["StartsWith"] for f in one["FieldSelectors"]} for one in selectors]
    assert fields == [
        {
            "eventCategory": ["Data"],
            "resources.type": [f"AWS::DynamoDB::{kind}"],
            "resources.ARN": [f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/Pooldesk.Prod."],  # tenants' own tables too
        }
        for kind in kinds
    ]
    service = {"Service": "cloudtrail.amazonaws.com"}
    writers = [s for s in statements_in(stack.resources) if s.get("Principal") == service]
    assert {s["Action"] for s in writers} == ({"s3:GetBucketAcl", "s3:PutObject"} if kinds else set())
    for trail in trails:
        assert trail["IsLogging"] is trail["EnableLogFileValidation"] is True
        source = f"arn:aws:cloudtrail:{REGION}:{ACCOUNT}:trail/{trail['TrailName']}"
        assert all(s["Condition"] == {"StringEquals": {"aws:SourceArn": source}} for s in writers)


# --- roles ---


def test_every_role_of_the_code_has_its_policy_word_for_word(production: Stack) -> None:
    assert set(registry.ROLES) == set(POLICIES)
    with override_settings(AWS_REGION=REGION, AWS_ACCOUNT_ID=ACCOUNT, DYNAMODB_TABLE_PREFIX="Pooldesk.Prod"):
        expected = {role: policies.document(role)["Statement"] for role in registry.ROLES}
    documents = {r: [production.properties(name)["PolicyDocument"] for name in names] for r, names in POLICIES.items()}
    assert {r: [s for one in found for s in one["Statement"]] for r, found in documents.items()} == expected
    assert {one["Version"] for found in documents.values() for one in found} == {"2012-10-17"}


def test_every_policy_is_attached_to_its_role_and_commands_in_bulk_have_the_webs_as_well(production: Stack) -> None:
    attached = {
        name: resource["Properties"]["Roles"]
        for name, resource in production.resources.items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
    }
    platforms = {name: ["WebRole", "SeedRole", "LifecycleRole"] for name in POLICIES["platform"]} | {
        "AssumeTenantPolicy": ACTING
    }
    assert attached == {name: [ROLES[role]] for role in ROLES for name in POLICIES[role]} | platforms


def test_who_becomes_another_role_becomes_the_tenant_role_and_no_other(production: Stack) -> None:
    (statement,) = production.properties("AssumeTenantPolicy")["PolicyDocument"]["Statement"]
    assert statement["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    assert statement["Resource"] == "TenantRole.Arn"


def test_sites_of_silos_are_entered_by_the_roles_that_are_named_and_no_others(production: Stack) -> None:
    assert "EnterSitesPolicy" not in production.resources
    there = [f"arn:aws:iam::999999999999:role/{name}" for name in ("Tenant", "Worker")]
    entering = Stack(committed(), **PRODUCTION, SiteRoles=",".join(there)).properties("EnterSitesPolicy")
    (statement,) = entering["PolicyDocument"]["Statement"]
    assert (statement["Action"], statement["Resource"]) == (["sts:AssumeRole", "sts:TagSession"], there)
    assert entering["Roles"] == production.properties("AssumeTenantPolicy")["Roles"]


def test_only_processes_of_ours_become_the_tenant_role_and_only_for_one_tenant(production: Stack) -> None:
    (trust,) = production.properties("TenantRole")["AssumeRolePolicyDocument"]["Statement"]
    assert trust == {
        "Effect": "Allow",
        "Principal": {"AWS": [f"{role}.Arn" for role in ACTING]},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {
            "StringLike": {"aws:RequestTag/TenantId": "?" * 32},
            "Null": {"aws:RequestTag/TenantId": "false"},
            "ForAllValues:StringEquals": {"aws:TagKeys": ["TenantId"]},
        },
    }


def test_the_other_roles_are_for_one_service_in_this_accounts_name(production: Stack) -> None:
    for role in ACTING:
        (trust,) = production.properties(role)["AssumeRolePolicyDocument"]["Statement"]
        assert trust == {
            "Effect": "Allow",
            "Principal": {"Service": "ecs-tasks.amazonaws.com"},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEqualsIfExists": {"aws:SourceAccount": ACCOUNT}},
        }


def test_nothing_in_the_template_allows_scan_partiql_or_a_wildcard_action(written: Json) -> None:
    actions = [
        action
        for statement in statements_in(Stack(written, **WITH_IMAGE).resources)
        if statement.get("Sid") != "AccountAdministersTheKey"  # a key that nobody could administer cannot be made
        if statement["Effect"] == "Allow"
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    ]
    allowed = re.compile(
        r"(dynamodb|ecr|ecs|kms|lambda|logs|s3|secretsmanager|ses|sns|sqs|sts):[A-Za-z]+|kms:(GenerateDataKey|ReEncrypt)\*"
    )
    assert len(actions) > 40
    assert [a for a in actions if not allowed.fullmatch(a)] == []
    assert [a for a in actions if "Scan" in a or "PartiQL" in a] == []


def test_policies_are_within_the_quotas_of_iam(written: Json) -> None:
    prefix = "P" * written["Parameters"]["TablePrefix"]["MaxLength"]
    longest = Stack(written, **WITH_FUNCTION | {"TablePrefix": prefix, "AWS::Region": "us-gov-west-1"})
    managed = [r["Properties"] for r in longest.resources.values() if r["Type"] == "AWS::IAM::ManagedPolicy"]
    attached = Counter(role for policy in managed for role in policy["Roles"])
    assert set(attached) == {*ROLES.values(), "RotationRole"}
    assert max(attached.values()) <= POLICIES_OF_A_ROLE
    for name, resource in longest.resources.items():
        for kind, limit in (("PolicyDocument", POLICY_CHARACTERS), ("AssumeRolePolicyDocument", TRUST_CHARACTERS)):
            length = len(json.dumps(resource["Properties"].get(kind), separators=(",", ":")))
            assert length <= limit, f"{name} has {length} characters"


def test_the_longest_prefix_is_the_last_that_fits(written: Json) -> None:
    longest = written["Parameters"]["TablePrefix"]["MaxLength"]
    assert longest == policies.longest_prefix() >= 40
    assert max(len(f"{'P' * longest}.{table.name}") for table in registry.tables()) <= 255
    # A queue's name takes 80 characters, fewer than a table's, and what follows the declared name at most 4.
    assert max(len(f"{'P' * longest}-{name}") for name in registry.queues()) == 80 - 4


def test_a_policy_has_the_size_that_iam_counts_at_most() -> None:
    prefix = "P" * policies.longest_prefix()
    with override_settings(AWS_REGION="us-gov-west-1", AWS_ACCOUNT_ID="123456789012", DYNAMODB_TABLE_PREFIX=prefix):
        text = json.dumps(policies.document("platform"), indent=4).replace("arn:aws:", "arn:aws-us-gov:")
        assert policies.size(policies.document("platform")) == len("".join(text.split())) > POLICY_CHARACTERS


def test_a_policy_is_parted_in_the_same_places_for_every_prefix() -> None:
    parted = []
    for prefix in ("P", "Pooldesk.Prod", "P" * policies.longest_prefix()):
        with override_settings(DYNAMODB_TABLE_PREFIX=prefix):
            parted.append([[s["Sid"] for s in one["Statement"]] for one in policies.managed("platform")])
    assert parted[0] == parted[1] == parted[2]
    assert len(parted[0]) > 1


def test_the_command_prints_a_policy_whole_and_in_its_parts() -> None:
    def printed(*arguments: str) -> list[Json]:
        said = StringIO()
        call_command("iam_policy", "platform", *arguments, stdout=said)
        statements: list[Json] = json.loads(said.getvalue())["Statement"]
        return statements

    parts = [statement for part in "123" for statement in printed("--part", part)]
    assert parts == printed() == policies.document("platform")["Statement"]
    with pytest.raises(CommandError, match="has the parts 1 to 3"):
        printed("--part", "4")


def test_the_outputs_name_what_the_portal_and_the_worker_need(production: Stack) -> None:
    values = {name: output["Value"] for name, output in production.outputs.items()}
    assert {f"{infra.logical_id(t)}Name" for t in registry.tables()} <= set(values)
    assert {f"{role}Arn": f"{role}.Arn" for role in ROLES.values()}.items() <= values.items()
    assert values["SupportTicketsTableStreamArn"] == "SupportTicketsTable.StreamArn"


# --- deployed ---


class Cloud:
    """The embedded engine's CloudFormation, IAM and DynamoDB, in a process of its own."""

    def __init__(self, endpoint_url: str) -> None:
        self.endpoint_url = endpoint_url
        self.stacks, self.iam, self.dynamodb, bucket = (
            boto3.client(
                name,
                endpoint_url=endpoint_url,
                region_name=REGION,
                aws_access_key_id="cloud",
                aws_secret_access_key="cloud",
            )
            for name in ("cloudformation", "iam", "dynamodb", "s3")
        )
        bucket.create_bucket(Bucket="templates", CreateBucketConfiguration={"LocationConstraint": REGION})
        bucket.put_object(Bucket="templates", Key="template.yaml", Body=COMMITTED.read_bytes())

    def deploy(self, name: str, **parameters: str) -> dict[str, str]:
        """Create the stack from the committed file, which lies in a bucket as its header says; its outputs."""
        self.stacks.create_stack(
            StackName=name,
            TemplateURL=f"{self.endpoint_url}/templates/template.yaml",
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
            Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items()],
        )
        stack = self._settled(name)
        assert stack["StackStatus"] == "CREATE_COMPLETE", stack
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    def remove(self, name: str) -> None:
        stack_id = self.stacks.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.stacks.delete_stack(StackName=name)
        assert self._settled(stack_id)["StackStatus"] == "DELETE_COMPLETE"

    def _settled(self, name: str) -> Json:
        for _ in range(2000):
            (stack,) = self.stacks.describe_stacks(StackName=name)["Stacks"]
            if not stack["StackStatus"].endswith("IN_PROGRESS"):
                return stack
            time.sleep(0.05)
        raise AssertionError(f"{name} stays {stack['StackStatus']}")

    def tables(self, prefix: str) -> set[str]:
        return {name for name in self.dynamodb.list_tables()["TableNames"] if name.startswith(f"{prefix}.")}

    def policies_of(self, role_arn: str) -> list[Json]:
        attached = self.iam.list_attached_role_policies(RoleName=role_arn.rpartition("/")[2])["AttachedPolicies"]
        versions = [(p, self.iam.get_policy(PolicyArn=p["PolicyArn"])["Policy"]["DefaultVersionId"]) for p in attached]
        return [
            self.iam.get_policy_version(PolicyArn=p["PolicyArn"], VersionId=v)["PolicyVersion"]["Document"]
            for p, v in versions
        ]


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ministack, "services", f"{Ministack.services},s3")
        with start_engine() as engine:
            yield Cloud(engine.endpoint_url)


@pytest.fixture
def production_cloud(cloud: Cloud) -> Iterator[Cloud]:
    """The portal pointed at a production stack, and signing for tenants as the role that the stack made."""
    outputs = cloud.deploy("portal", Environment="prod", TablePrefix=settings.DYNAMODB_TABLE_PREFIX)
    with override_settings(
        DYNAMODB_ENDPOINT_URL=cloud.endpoint_url,
        STS_ENDPOINT_URL=cloud.endpoint_url,
        TENANT_ROLE_ARN=outputs["TenantRoleArn"],
    ):
        client.reset()
        cache.clear()
        yield cloud
    client.reset()
    cache.clear()


def test_the_portal_runs_on_what_production_deploys(production_cloud: Cloud) -> None:
    assert provisioning.create_all() == {table.full_name: False for table in registry.tables()}
    world = World.create()
    browser = world.browser("bob", "acme")
    form = {"title": "The printer is on fire", "priority": "high", "tags": "", "request_id": "a" * 32}
    opened = browser.send("/tickets/new/", form)
    assert opened["Location"] == "/acme/tickets/1/"
    assert "The printer is on fire" in browser.get("/tickets/").content.decode()
    stored = production_cloud.dynamodb.scan(TableName=TICKETS.full_name)["Items"]
    assert {"S": "The printer is on fire"} in [item.get("title") for item in stored]


@pytest.fixture(scope="module")
def outputs(cloud: Cloud) -> dict[str, str]:
    """What a development stack says of itself."""
    return cloud.deploy("roles", Environment="dev", TablePrefix="Pooldesk.Roles")


def test_the_deployed_policies_are_those_that_the_guard_holds_requests_against(
    cloud: Cloud, outputs: dict[str, str]
) -> None:
    account = outputs["TenantRoleArn"].split(":")[4]
    bucket = outputs["ObjectBucketName"]
    with override_settings(
        AWS_REGION=REGION, AWS_ACCOUNT_ID=account, DYNAMODB_TABLE_PREFIX="Pooldesk.Roles", MAIL_BUCKET=bucket
    ):
        expected = {role: policies.document(role)["Statement"] for role in registry.ROLES}
    for role, name in ROLES.items():
        deployed = [statement for one in cloud.policies_of(outputs[f"{name}Arn"]) for statement in one["Statement"]]
        assert [statement for statement in expected[role] if statement not in deployed] == []


def test_the_stream_carries_both_images(cloud: Cloud, outputs: dict[str, str]) -> None:
    described = cloud.dynamodb.describe_table(TableName=outputs["SupportTicketsTableName"])["Table"]
    assert described["LatestStreamArn"] == outputs["SupportTicketsTableStreamArn"]
    assert described["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_a_removed_stack_takes_its_tables_along_only_in_development(cloud: Cloud) -> None:
    for environment, left in (("dev", 0), ("prod", len(registry.tables()))):
        prefix = f"Pooldesk.Removed.{environment}"
        cloud.deploy(f"removed-{environment}", Environment=environment, TablePrefix=prefix)
        cloud.remove(f"removed-{environment}")
        assert len(cloud.tables(prefix)) == left, environment
