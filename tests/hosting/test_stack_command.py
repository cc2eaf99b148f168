"""`manage.py stack`, on the embedded engine's CloudFormation: the whole stack is created, upgraded and removed there.

The engine has no NAT gateways, autoscaling, rotation schedules and association of a firewall, and starts no task. The
template is created without those kinds of resources: only AWS can show them, as docs/deploy.md says.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Iterator
from io import StringIO
from typing import Any

import boto3
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from portal.deployment import template as infra
from portal.engines.endpoint import REGION
from portal.engines.engine_process import Ministack, start_engine
from portal.errors import Conflict
from portal.hosting import prices, stack_control, stack_steps
from portal.hosting.stack_control import StackChange, StackControl

NOT_IN_THE_ENGINE = (
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::EIP",
    "AWS::EC2::NatGateway",
    "AWS::WAFv2::WebACLAssociation",
    "AWS::ApplicationAutoScaling::ScalableTarget",
    "AWS::ApplicationAutoScaling::ScalingPolicy",
    "AWS::SecretsManager::RotationSchedule",
    "AWS::SES::ReceiptRule",
    "AWS::SES::ReceiptRuleSet",
)
SERVICES = "ec2,elbv2,ecs,ecr,acm,wafv2,secretsmanager,ses,sns,monitoring,events,kms"
ACCOUNT = "000000000000"
HOST = "desk.example.com"


class Cloud:
    """An account of the embedded engine, with an image, a certificate, and what it can have of the template."""

    def __init__(self, endpoint_url: str) -> None:
        self.endpoint_url = endpoint_url
        whole = infra.template()
        made = {name: one for name, one in whole["Resources"].items() if one["Type"] not in NOT_IN_THE_ENGINE}
        told = {name: one for name, one in whole["Outputs"].items() if name != "LettersRuleSetName"}
        self.template = {**whole, "Resources": made, "Outputs": told}
        self.session = boto3.Session("cloud", "cloud", region_name=REGION)
        self.client("ecr").create_repository(repositoryName="pooldesk")
        for tag in ("1", "2"):
            self.client("ecr").put_image(
                repositoryName="pooldesk", imageTag=tag, imageManifest=f'{{"schemaVersion": 2, "config": "{tag}"}}'
            )
        self.certificate = self.client("acm").request_certificate(DomainName=HOST)["CertificateArn"]

    def client(self, service: str) -> Any:
        return self.session.client(service, endpoint_url=self.endpoint_url)

    def image(self, tag: str) -> str:
        return f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/pooldesk:{tag}"

    def first(self, **changed: str) -> dict[str, Any]:
        return {
            "image": self.image("1"),
            "certificate": self.certificate,
            "address": f"https://{HOST}",
            "sender": "Desk <desk@mail.example.com>",
            **changed,
        }


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ministack, "services", f"{Ministack.services},{SERVICES}")
        with start_engine() as engine:
            yield Cloud(engine.endpoint_url)


@pytest.fixture
def here(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """The account, to which the commands go."""
    monkeypatch.setattr(infra, "template", lambda: cloud.template)
    # Each of its own would read the descriptions of all services again.
    monkeypatch.setattr(stack_control.boto3, "Session", lambda **of: cloud.session)
    monkeypatch.setattr(stack_control, "_SECONDS", 0.05)
    for name, value in (
        ("AWS_ENDPOINT_URL", cloud.endpoint_url),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
    ):
        monkeypatch.setenv(name, value)
    return cloud


def said(monkeypatch: pytest.MonkeyPatch, action: str, name: str, *answers: str, **options: Any) -> str:
    """Run the command with these answers on its input; what it says, with the error at its end."""
    out = StringIO()
    monkeypatch.setattr(sys, "stdin", StringIO("".join(f"{one}\n" for one in answers)))
    try:
        call_command("stack", action, name, region=REGION, stdout=out, **options)
    except CommandError as error:
        return f"{out.getvalue()}{error}"
    return out.getvalue()


def status(cloud: Cloud, name: str) -> str:
    found = StackControl(name, cloud.session, console=None, endpoint_url=cloud.endpoint_url).found()  # type: ignore[arg-type]
    return found["StackStatus"] if found else "none"


def test_a_stack_is_created_upgraded_and_removed_with_its_data_kept(
    here: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = said(monkeypatch, "deploy", "desk", "yes", **here.first())
    assert status(here, "desk") == "CREATE_COMPLETE", first
    assert f"Account {ACCOUNT}, region {REGION}" in first
    assert "AWS::ECS::Service" in first
    assert f"The portal: https://{HOST}" in first
    assert f"DNS entry: {HOST} CNAME " in first
    assert "make operator STACK=desk" in first
    assert "dollars before traffic" in first

    again = said(monkeypatch, "deploy", "desk", "yes", **here.first())
    assert "Nothing to change" in again

    upgraded = said(monkeypatch, "upgrade", "desk", "yes", image=here.image("2"))
    assert status(here, "desk") == "UPDATE_COMPLETE", upgraded
    assert "WebTask" in upgraded
    assert "make operator" not in upgraded

    tables = set(here.client("dynamodb").list_tables()["TableNames"])
    removed = said(monkeypatch, "teardown", "desk", "desk")
    assert status(here, "desk") == "none", removed
    assert "AWS::DynamoDB::Table desk." in removed
    assert {name for name in tables if name.startswith("desk.")} <= set(
        here.client("dynamodb").list_tables()["TableNames"]
    )


def test_a_stack_that_nobody_agrees_to_is_not_made(here: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Nothing was changed." in said(monkeypatch, "deploy", "unwanted", "no", **here.first())
    assert status(here, "unwanted") == "none"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"image": None}, "A new stack needs IMAGE"),
        ({"address": None, "certificate": None}, "A new stack needs CERTIFICATE, ADDRESS"),
        ({"address": "http://desk.example.com"}, "ADDRESS is https://"),
        ({"address": "https://desk.example.com/portal"}, "ADDRESS is https://"),
        ({"address": "https://other.example.com"}, "The certificate is for desk.example.com, and not for other"),
        ({"certificate": "arn:aws:acm:us-east-1:1:certificate/1"}, f"of {REGION}"),
        ({"image": "docker.io/pooldesk:1"}, "in the account's own registry"),
        ({"image": f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/pooldesk:absent"}, "docker push"),
        ({"set": ["Sise=large"]}, "'Sise=large' is not NAME=VALUE"),
    ],
)
def test_what_aws_would_refuse_later_is_refused_at_once(
    here: Cloud, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], reason: str
) -> None:
    assert reason in said(monkeypatch, "deploy", "refused", "yes", **here.first(**changed))
    assert status(here, "refused") == "none"


@pytest.mark.parametrize(
    ("action", "options"), [("upgrade", {}), ("teardown", {}), ("run", {"command": "check_health"})]
)
def test_a_stack_that_is_not_there_is_named(
    here: Cloud, monkeypatch: pytest.MonkeyPatch, action: str, options: dict[str, Any]
) -> None:
    assert f"There is no stack absent in {REGION}" in said(monkeypatch, action, "absent", "yes", **options)


def test_changes_that_would_lose_data_are_refused_before_anybody_is_asked(
    here: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = [StackChange("Modify", "SupportTicketsTable", "AWS::DynamoDB::Table", replaced=True)]
    monkeypatch.setattr(StackControl, "change_set", lambda *of: lost)
    monkeypatch.setattr(StackControl, "discard", lambda control: None)
    answer = said(monkeypatch, "deploy", "lossy", "yes", **here.first())
    assert "hold" in answer
    assert "SupportTicketsTable" in answer
    assert status(here, "lossy") == "none"


@pytest.mark.parametrize(
    ("change", "loses"),
    [
        (StackChange("Remove", "T", "AWS::DynamoDB::Table", replaced=False), True),
        (StackChange("Modify", "B", "AWS::S3::Bucket", replaced=True), True),
        (StackChange("Modify", "T", "AWS::DynamoDB::Table", replaced=False), False),
        (StackChange("Remove", "Q", "AWS::SQS::Queue", replaced=False), False),
    ],
)
def test_data_is_lost_where_a_table_bucket_secret_or_key_is_removed_or_replaced(
    change: StackChange, *, loses: bool
) -> None:
    assert change.loses_data is loses


def test_a_stacks_data_goes_after_two_answers_in_development_if_told_twice_so_that_its_name_is_free_again(
    here: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = said(monkeypatch, "deploy", "past", "yes", **here.first())
    assert status(here, "past") == "CREATE_COMPLETE", made
    sentence = "delete all data of past"
    removed = said(monkeypatch, "teardown", "past", "past", sentence, delete_data=True)
    assert removed.endswith("past is removed.\n")

    def left() -> list[str]:
        secrets = [one["Name"] for one in here.client("secretsmanager").list_secrets()["SecretList"]]
        tables = here.client("dynamodb").list_tables()["TableNames"]
        return [one for one in (*secrets, *tables) if one.startswith(("past/", "past."))]

    assert left() == []
    made = said(monkeypatch, "deploy", "past", "yes", **here.first(set=["Environment=dev"]))
    assert status(here, "past") == "CREATE_COMPLETE", made
    assert "DELETE_DATA=1" in said(monkeypatch, "teardown", "past", "past")
    assert "Nothing was removed." in said(monkeypatch, "teardown", "past", "past", "yes", delete_data=True)
    assert status(here, "past") == "CREATE_COMPLETE"
    assert "past is removed." in said(monkeypatch, "teardown", "past", "past", sentence, delete_data=True)
    assert left() == []


def test_every_variable_of_the_page_is_one_of_the_makefile() -> None:
    page, makefile = ((settings.BASE_DIR / name).read_text() for name in ("docs/deploy.md", "Makefile"))
    named = set(
        re.findall(
            r"\b([A-Z_]+)=", " ".join(re.findall(r"make (?:deploy|upgrade|operator|manage|teardown) (.+)", page))
        )
    )
    assert {"STACK", "REGION", "IMAGE", "COMMAND", "DELETE_DATA", "EMAIL", "NAME"} <= named
    assert [one for one in named if f"$({one})" not in makefile and f",{one}," not in makefile] == []


# --- commands in a task, which the engine does not start ---


class Tasks:
    """ECS and its log, with a task that ends at once."""

    def __init__(self, exit_code: int | None = 0) -> None:
        self.exit_code = exit_code
        self.asked: dict[str, Any] = {}

    def run_task(self, **asked: Any) -> dict[str, Any]:
        self.asked = asked
        return {"failures": [], "tasks": [{"taskArn": "arn:task/desk-cluster/1"}]}

    def describe_tasks(self, **asked: Any) -> dict[str, Any]:
        container = {} if self.exit_code is None else {"exitCode": self.exit_code}
        return {"tasks": [{"lastStatus": "STOPPED", "stoppedReason": "no image", "containers": [container]}]}

    def get_log_events(self, **asked: Any) -> dict[str, Any]:
        return {"events": [{"message": "All is well."}]}


class Console:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def agrees(self, question: str, answer: str) -> bool:
        return True


OUTPUTS = {
    "WebTaskArn": "task", "ClusterName": "desk-cluster", "TaskSubnetIds": "subnet-1,subnet-2", "TaskGroupId": "sg-1",
    "TasksArePublic": "ENABLED", "WebRoleArn": "web", "LifecycleRoleArn": "lifecycle", "Secrets": "arn:1,arn:2",
}  # fmt: skip


@pytest.fixture
def control(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> StackControl:
    control = StackControl(
        "desk", cloud.session, Console(), endpoint_url=cloud.endpoint_url, sleep=lambda seconds: None
    )
    monkeypatch.setattr(StackControl, "outputs", lambda control: OUTPUTS)
    return control


def test_a_command_runs_as_the_role_that_it_needs_and_its_log_and_status_come_back(control: StackControl) -> None:
    tasks = Tasks(exit_code=3)
    control._clients.update(ecs=tasks, logs=tasks)
    assert stack_steps.run(control, ["check_health"], role="Lifecycle") == 3
    assert control.console.lines[-1] == "All is well."  # type: ignore[attr-defined]
    overrides = tasks.asked["overrides"]
    assert overrides["taskRoleArn"] == "lifecycle"
    assert overrides["containerOverrides"][0]["command"] == ["python3", "manage.py", "check_health"]


def test_a_task_that_did_not_run_is_an_error_with_its_reason(control: StackControl) -> None:
    tasks = Tasks(exit_code=None)
    control._clients.update(ecs=tasks, logs=tasks)
    with pytest.raises(Conflict, match="no image"):
        stack_steps.run(control, ["check_health"])


@pytest.mark.parametrize("exit_code", [0, None])
def test_the_first_operators_password_is_in_no_request_and_its_secret_goes_also_after_an_error(
    control: StackControl, exit_code: int | None
) -> None:
    tasks = Tasks(exit_code)
    control._clients.update(ecs=tasks, logs=tasks)
    try:
        stack_steps.operator(control, "you@example.com", "You", "a long pass phrase")
    except Conflict:
        assert exit_code is None
    assert "a long pass phrase" not in str(tasks.asked)
    (variable,) = tasks.asked["overrides"]["containerOverrides"][0]["environment"]
    assert variable["value"].startswith("arn:1,arn:2,arn:aws:secretsmanager:")
    left = control.client("secretsmanager").list_secrets()["SecretList"]
    assert not [one for one in left if "operator" in one["Name"]]


# --- prices ---


def test_a_month_costs_more_for_the_large_size_and_less_on_arm() -> None:
    small, large = (prices.total(prices.month(size)) for size in ("small", "large"))
    assert 0 < prices.total(prices.month("small", "arm64")) < small < large
    assert prices.total(prices.month("large", own_network=False)) < large


@pytest.mark.parametrize("size", ["small", "large"])
def test_the_page_has_the_computed_prices_and_their_date(size: str) -> None:
    page = (settings.BASE_DIR / "docs" / "deploy.md").read_text()
    alarms = prices.alarms_of(infra.template())
    of_both = [prices.total(prices.month(size, processor, alarms=alarms)) for processor in ("x86_64", "arm64")]
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{size}` |")]
    assert row.endswith(" | ".join(f"{price:.2f}" for price in of_both) + " |")
    assert f"{prices.NOTED:%d %B %Y}" in page


# --- indexes ---


def changed_indexes(template: dict[str, Any]) -> dict[str, Any]:
    """The template of a version before: two indexes of a table were not there yet, and another one was."""
    before = copy.deepcopy(template)
    properties = before["Resources"]["SupportTicketsTable"]["Properties"]
    first, _, *others = properties["GlobalSecondaryIndexes"]
    former = {**first, "IndexName": "former-00000000"}
    properties["GlobalSecondaryIndexes"] = [*others, former]
    used = {"pk", "sk"} | {key["AttributeName"] for one in [*others, former, properties] for key in one["KeySchema"]}
    properties["AttributeDefinitions"] = [
        one for one in properties["AttributeDefinitions"] if one["AttributeName"] in used
    ]
    return before


def test_an_upgrade_builds_new_indexes_one_by_one_before_the_new_version_and_removes_former_ones_after_it(
    here: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = infra.template()
    before = changed_indexes(today)
    monkeypatch.setattr(infra, "template", lambda: before)
    made = said(monkeypatch, "deploy", "indexed", "yes", **here.first())
    assert status(here, "indexed") == "CREATE_COMPLETE", made
    monkeypatch.setattr(infra, "template", lambda: today)
    real, with_the_image = StackControl.change_set, list[bool]()

    def noted(control: StackControl, url: str, wanted: dict[str, str], known: set[str]) -> list[StackChange]:
        with_the_image.append("Image" in wanted)
        return real(control, url, wanted, known)

    monkeypatch.setattr(StackControl, "change_set", noted)
    told = said(monkeypatch, "upgrade", "indexed", "yes", image=here.image("2"))
    order = [line for line in told.splitlines() if line.endswith(("):", "version:")) and "dollars" not in line]
    assert order == [
        "Build new indexes (1 of 2):",
        "Build new indexes (2 of 2):",
        "Start this version:",
        "Remove former indexes (1 of 1):",
    ], told
    wanted = {
        one["IndexName"] for one in today["Resources"]["SupportTicketsTable"]["Properties"]["GlobalSecondaryIndexes"]
    }
    table = here.client("dynamodb").describe_table(TableName="indexed.Support.Tickets")["Table"]
    assert {one["IndexName"] for one in table["GlobalSecondaryIndexes"]} == wanted
    assert with_the_image == [False, False, True, True]


def test_each_stage_adds_or_removes_one_index_of_a_table_and_defines_the_attributes_of_its_keys() -> None:
    today = infra.template()
    properties = changed_indexes(today)["Resources"]["SupportTicketsTable"]["Properties"]
    described = {name: properties[name] for name in ("GlobalSecondaryIndexes", "AttributeDefinitions")}
    tables = stack_steps.indexes_of(today, lambda name: described if name == "desk.Support.Tickets" else None, "desk")
    before = {one["IndexName"] for one in described["GlobalSecondaryIndexes"]}
    for stage in stack_steps.stages(today, tables):
        table = stage.template["Resources"]["SupportTicketsTable"]["Properties"]
        after = {one["IndexName"] for one in table["GlobalSecondaryIndexes"]}
        assert len(after ^ before) <= 1
        keys = {key["AttributeName"] for one in [*table["GlobalSecondaryIndexes"], table] for key in one["KeySchema"]}
        assert {one["AttributeName"] for one in table["AttributeDefinitions"]} == keys
        before = after
    final = stack_steps.stages(today, tables)[-1].template["Resources"]["SupportTicketsTable"]["Properties"]
    wanted = today["Resources"]["SupportTicketsTable"]["Properties"]
    assert final["GlobalSecondaryIndexes"] == wanted["GlobalSecondaryIndexes"]


def test_without_changed_indexes_an_upgrade_is_one_update_with_the_template_as_it_is() -> None:
    today = infra.template()
    (stage,) = stack_steps.stages(today, [])
    assert (stage.template, stage.new_version) == (today, True)
