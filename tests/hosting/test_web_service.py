"""The web service in infra/template.yaml: present with an image alone, in two zones, behind TLS.

Only AWS can show that it starts: docs/deploy.md says what the tests cannot.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client, override_settings

from portal.hosting import network
from tests.support.stacks import PRODUCTION, WITH_FUNCTION, WITH_IMAGE, Json, Stack, committed

OF_HOSTING = ("AWS::EC2", "AWS::ECS", "AWS::ElasticLoadBalancingV2", "AWS::WAFv2", "AWS::ApplicationAutoScaling")
GIVEN = {"Vpc": "vpc-11111111", "BalancerSubnets": "subnet-1,subnet-2", "TaskSubnets": "subnet-3,subnet-4"}


@pytest.fixture(scope="module")
def template() -> Json:
    return committed()


@pytest.fixture(scope="module")
def small(template: Json) -> Stack:
    return Stack(template, **WITH_IMAGE)


@pytest.fixture(scope="module")
def large(template: Json) -> Stack:
    return Stack(template, **WITH_IMAGE, Size="large")


def of_kind(stack: Stack, kind: str) -> dict[str, Json]:
    return {name: one["Properties"] for name, one in stack.resources.items() if one["Type"].startswith(kind)}


def container(stack: Stack) -> Json:
    (found,) = stack.properties("WebTask")["ContainerDefinitions"]
    return found


def test_the_template_is_far_from_cloudformations_limit_of_resources_and_outputs(template: Json) -> None:
    assert len(template["Resources"]) < 400  # of 500
    assert len(template["Outputs"]) < 150  # of 200
    assert len(template["Parameters"]) < 100  # of 200


@pytest.mark.parametrize("parameters", [PRODUCTION, WITH_FUNCTION])
def test_without_an_image_nothing_of_the_service_is_made(template: Json, parameters: dict[str, str]) -> None:
    assert not [kind for kind in OF_HOSTING if of_kind(Stack(template, **parameters), kind)]


@pytest.mark.parametrize(
    "changed", [{"CertificateArn": "none"}, {"PortalBaseUrl": "none"}, {"WorkerService": "ec2.amazonaws.com"}]
)
def test_an_image_without_what_it_needs_is_refused_before_anything_is_made(
    template: Json, changed: dict[str, str]
) -> None:
    rule = template["Rules"]["ServiceIsWhole"]
    for parameters, holds in ((WITH_IMAGE, True), (WITH_IMAGE | changed, False)):
        stack = Stack(template, **parameters)
        assert stack.resolved(rule["RuleCondition"]) is True
        assert all(stack.resolved(one["Assert"]) for one in rule["Assertions"]) is holds


def test_the_container_runs_as_its_user_on_a_read_only_file_system_and_only_tmp_is_writable(small: Stack) -> None:
    web = container(small)
    assert (web["User"], web["ReadonlyRootFilesystem"]) == ("10001:10001", True)
    assert [(mount["ContainerPath"], mount["ReadOnly"]) for mount in web["MountPoints"]] == [("/tmp", False)]  # noqa: S108
    assert web["StopTimeout"] >= 40
    assert "Secrets" not in web


def test_the_web_task_has_the_declared_role_and_another_one_fetches_its_image(small: Stack) -> None:
    task = small.properties("WebTask")
    assert (task["TaskRoleArn"], task["ExecutionRoleArn"]) == ("WebRole.Arn", "ExecutionRole.Arn")
    (policy,) = small.properties("ExecutionRole")["Policies"]
    services = {action.split(":")[0] for one in policy["PolicyDocument"]["Statement"] for action in one["Action"]}
    assert services == {"ecr", "logs"}


def test_the_settings_of_the_web_task_pass_the_checks_of_production(small: Stack) -> None:
    environ = {one["Name"]: one["Value"] for one in container(small)["Environment"]}
    assert environ["ALLOWED_HOSTS"] == "desk.example.com"
    assert environ["PORTAL_BASE_URL"] == "https://desk.example.com"
    assert (environ["BEHIND_TLS_PROXY"], environ["TRUSTED_PROXIES"]) == ("true", "1")
    assert environ["AWS_SECRETS"] == "SigningKeys,EncryptionKey,CertificateKey"
    assert environ["MAIL_DOMAIN"] == "mail.example.com"
    assert environ["DELIVERY_WORKERS"] == "0", "functions read the streams"
    functions = {name: of["Environment"]["Variables"] for name, of in of_kind(small, "AWS::Lambda::Function").items()}
    for name in ("DeliveryFunction", "LettersFunction", "BouncesFunction"):
        assert functions[name]["AWS_SECRETS"] == "SigningKeys,EncryptionKey", "addresses that people answer to"


def test_the_web_task_has_each_setting_that_a_function_has(small: Stack) -> None:
    web = {one["Name"] for one in container(small)["Environment"]}
    functions = of_kind(small, "AWS::Lambda::Function").values()
    settings_of_functions = {name for one in functions for name in one["Environment"]["Variables"]}
    # The number of queues is the settings' default, and the rest is what a rotation restarts.
    assert settings_of_functions - web == {"DELIVERY_QUEUES", "WEB_CLUSTER", "WEB_SERVICE"}


def test_functions_run_the_same_image_with_their_handler_as_its_command(small: Stack) -> None:
    for name, function in of_kind(small, "AWS::Lambda::Function").items():
        assert function["Code"] == {"ImageUri": WITH_IMAGE["Image"]}, name
        assert function["PackageType"] == "Image"
        assert function["ImageConfig"]["EntryPoint"] == ["python3", "-m", "awslambdaric"]
        assert not function.keys() & {"Runtime", "Handler"}, name


def test_a_new_version_that_does_not_become_ready_is_rolled_back_while_the_old_one_serves(small: Stack) -> None:
    how = small.properties("Web")["DeploymentConfiguration"]
    assert how["DeploymentCircuitBreaker"] == {"Enable": True, "Rollback": True}
    assert (how["MinimumHealthyPercent"], how["MaximumPercent"]) == (100, 200)


def test_the_balancer_asks_for_readiness_and_the_container_for_life_where_the_portal_answers_both(small: Stack) -> None:
    targets = small.properties("WebTargets")
    assert targets["HealthCheckPath"] == "/readyz"
    patience = targets["HealthCheckIntervalSeconds"] * targets["UnhealthyThresholdCount"]
    assert patience >= 180, "an engine that is away for a minute costs no task"
    assert "/healthz" in container(small)["HealthCheck"]["Command"][-1]
    with override_settings(SECURE_SSL_REDIRECT=True, ALLOWED_HOSTS=["desk.example.com"]):
        assert Client().get("/healthz", headers={"host": "10.20.0.17:8000"}).status_code == 200


def test_people_reach_the_portal_by_tls_alone(small: Stack) -> None:
    http, https = small.properties("HttpListener"), small.properties("HttpsListener")
    (redirect,), (forward,) = http["DefaultActions"], https["DefaultActions"]
    assert redirect["RedirectConfig"]["Protocol"] == "HTTPS"
    assert forward["TargetGroupArn"] == "WebTargets"
    assert https["Certificates"] == [{"CertificateArn": WITH_IMAGE["CertificateArn"]}]


def test_only_the_balancer_may_call_a_task(small: Stack) -> None:
    (rule,) = small.properties(network.TASK_GROUP)["SecurityGroupIngress"]
    assert rule["SourceSecurityGroupId"] == f"{network.BALANCER_GROUP}.GroupId"
    assert "CidrIp" not in rule
    assert {one["FromPort"] for one in small.properties(network.TASK_GROUP)["SecurityGroupEgress"]} == {443}


def test_tasks_are_in_two_zones_and_go_out_without_nat_if_small_and_by_one_in_each_zone_if_large(
    small: Stack, large: Stack
) -> None:
    for stack, kind, public, gateways in ((small, "Public", "ENABLED", 0), (large, "Private", "DISABLED", 2)):
        network_of = stack.properties("Web")["NetworkConfiguration"]["AwsvpcConfiguration"]
        assert network_of["Subnets"] == [f"{kind}SubnetA", f"{kind}SubnetB"]
        assert network_of["AssignPublicIp"] == public
        assert len(of_kind(stack, "AWS::EC2::NatGateway")) == gateways
        zones = {stack.properties(name)["AvailabilityZone"] for name in network_of["Subnets"]}
        assert len(zones) == 2
        assert "DesiredCount" not in stack.properties("Web"), "an upgrade leaves as many as autoscaling has started"
        assert stack.properties("WebScaling")["MinCapacity"] >= 2


def test_the_subnets_do_not_overlap_and_each_has_its_routes(large: Stack) -> None:
    subnets = of_kind(large, "AWS::EC2::Subnet")
    routed = of_kind(large, "AWS::EC2::SubnetRouteTableAssociation").values()
    assert len({one["CidrBlock"] for name, one in subnets.items() if "CidrBlock" in one}) == 4
    assert {one["SubnetId"] for one in routed} == {name for name, one in subnets.items() if "CidrBlock" in one}


def test_dynamodb_and_s3_are_reached_without_nat_from_every_subnet(large: Stack) -> None:
    tables = set(of_kind(large, "AWS::EC2::RouteTable"))
    endpoints = of_kind(large, "AWS::EC2::VPCEndpoint").values()
    assert {one["ServiceName"].rpartition(".")[2] for one in endpoints} == {"dynamodb", "s3"}
    for one in endpoints:
        assert one["VpcEndpointType"] == "Gateway"
        assert set(one["RouteTableIds"]) == tables


def test_a_given_network_is_used_and_none_is_made(template: Json) -> None:
    stack = Stack(template, **WITH_IMAGE, **GIVEN)
    made = {one["Type"] for name, one in stack.resources.items() if one["Type"].startswith("AWS::EC2")}
    assert made == {"AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupEgress"}
    used = stack.properties("Web")["NetworkConfiguration"]["AwsvpcConfiguration"]
    assert (used["Subnets"], used["AssignPublicIp"]) == (["subnet-3", "subnet-4"], "DISABLED")
    assert stack.properties("Balancer")["Subnets"] == ["subnet-1", "subnet-2"]
    assert stack.properties("WebTargets")["VpcId"] == "vpc-11111111"


def test_a_network_address_that_asks_too_often_is_blocked(template: Json) -> None:
    stack = Stack(template, **WITH_IMAGE, RequestsOfAddress="500")
    (rule,) = stack.properties("Firewall")["Rules"]
    assert rule["Statement"]["RateBasedStatement"] == {"AggregateKeyType": "IP", "Limit": "500"}
    assert "Block" in rule["Action"]
    assert stack.properties("FirewallOfBalancer")["ResourceArn"] == "Balancer"


def test_the_service_grows_by_processor_and_by_requests(small: Stack, large: Stack) -> None:
    for stack in (small, large):
        target = stack.properties("WebScaling")
        assert 2 <= target["MinCapacity"] < target["MaxCapacity"]
        measured = {
            one["TargetTrackingScalingPolicyConfiguration"]["PredefinedMetricSpecification"]["PredefinedMetricType"]
            for one in of_kind(stack, "AWS::ApplicationAutoScaling::ScalingPolicy").values()
        }
        assert measured == {"ECSServiceAverageCPUUtilization", "ALBRequestCountPerTarget"}


def test_every_log_ends(small: Stack) -> None:
    logs = of_kind(small, "AWS::Logs::LogGroup")
    assert logs.keys() >= {"WebLogGroup", "DeliveryLogGroup", "RotationLogGroup"}
    assert all(one["RetentionInDays"] <= 90 for one in logs.values())


def test_the_dashboard_is_a_document_whose_graphs_do_not_overlap(small: Stack) -> None:
    body: dict[str, Any] = json.loads(small.properties("Dashboard")["DashboardBody"])
    places = [(one["x"], one["y"]) for one in body["widgets"]]
    assert len(places) == len(set(places)) >= 10
    assert all(one["x"] + one["width"] <= 24 for one in body["widgets"])
    metrics = {one["properties"]["title"]: one["properties"]["metrics"] for one in body["widgets"]}
    assert all(metrics.values())
    functions = {one["FunctionName"] for one in of_kind(small, "AWS::Lambda::Function").values()}
    assert functions - {"pooldesk-rotation"} <= {metric[3] for metric in metrics["Functions: failed"]}
    queues = {one["QueueName"] for one in of_kind(small, "AWS::SQS::Queue").values() if "QueueName" in one}
    assert queues == {metric[3] for metric in metrics["Queues: messages"]}


def test_the_domain_of_mail_becomes_an_identity_whose_entries_the_stack_tells_unless_there_is_one(
    template: Json,
) -> None:
    made = Stack(template, **WITH_IMAGE)
    assert made.properties("MailDomainIdentity") == {"EmailIdentity": "mail.example.com"}
    assert {"Dkim1", "Dkim2", "Dkim3"} <= made.outputs.keys()
    there = Stack(template, **WITH_IMAGE, MailIdentity="there")
    assert "MailDomainIdentity" not in there.resources
    assert "LettersRule" in there.resources
