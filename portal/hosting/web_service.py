"""Declare the web service: an ECS service on Fargate in two zones behind an Application Load Balancer with TLS.

It is there where the stack has an image. A new version that does not become ready is rolled back by the circuit
breaker. A process that hangs is replaced by the container's own check within a minute. The load balancer asks for
readiness, and patiently: while DynamoDB is away, pages say so, and a restart would not help.

Sources: AWS, "AWS::ECS::Service" and "AWS::ECS::TaskDefinition", "How the Amazon ECS deployment circuit breaker detects
failures", "Target groups for your Application Load Balancers", "Rate-based rule statement".
"""

from __future__ import annotations

from typing import Any, Final

from portal.deployment import object_bucket, parts, template
from portal.deployment.parts import HAS_IMAGE, Json, allow, arn, both, document, either, text_parameter
from portal.deployment.template import PRODUCTION, sub
from portal.hosting import network
from portal.hosting.network import LARGE, PORT
from portal.load import reporting

CERTIFICATE: Final = "CertificateArn"
# CPU units, MB, gunicorn's processes, and the fewest and most tasks of a size.
SMALL: Final = (512, 1024, 2, 2, 4)
BIG: Final = (2048, 4096, 4, 2, 10)
_CPU, _MEMORY, _PROCESSES, FEWEST, MOST = range(5)
WEB_LOG: Final = "WebLogGroup"
_ACCOUNT: Final = "arn:${AWS::Partition}:%s:${AWS::Region}:${AWS::AccountId}:"
_LIVE: Final = f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{PORT}/healthz', timeout=2)"
ALARMED: Final = "HasAlarmTopicAndService"
ALARMED_ALONE: Final = "HasAlarmTopicWithoutService"

PARAMETERS: Final[Json] = {
    CERTIFICATE: text_parameter(
        "With Image: the certificate of PortalBaseUrl's host, in AWS Certificate Manager of this region",
        parts.NOT_GIVEN,
    ),
    "RequestsOfAddress": {
        "Type": "Number",
        "Description": "Requests that one network address may make in five minutes; more are blocked",
        "Default": 3000,
        "MinValue": 100,
        "MaxValue": 2000000000,
    },
}
CONDITIONS: Final[Json] = {
    ALARMED: both(parts.WANTED, HAS_IMAGE),
    ALARMED_ALONE: {"Fn::And": [{"Condition": parts.WANTED}, {"Fn::Not": [{"Condition": HAS_IMAGE}]}]},
}


def _needed(parameter: str) -> Json:
    given = {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, parts.NOT_GIVEN]}]}
    return {"Assert": given, "AssertDescription": f"{parts.IMAGE} needs {parameter}"}


RULES: Final[Json] = {
    "ServiceIsWhole": {
        "RuleCondition": parts.IMAGE_GIVEN,
        "Assertions": [
            _needed(CERTIFICATE),
            _needed("PortalBaseUrl"),
            {
                "Assert": {"Fn::Equals": [{"Ref": parts.SERVICE}, "lambda.amazonaws.com"]},
                "AssertDescription": f"{parts.IMAGE} needs {parts.SERVICE}=lambda.amazonaws.com: "
                "the workers of a whole stack are functions of the same image",
            },
        ],
    }
}


def of_size(what: int) -> Json:
    return either(LARGE, BIG[what], SMALL[what])


def resources(logical_id: Any, roles: dict[str, str]) -> Json:
    return {**_balancer(), **_firewall(), **_execution(), **_tasks(roles["platform"]), **_scaling(), **_alarms()}


def _made(kind: str, properties: Json, **more: Any) -> Json:
    return {"Type": kind, "Condition": HAS_IMAGE, **more, "Properties": properties}


def _balancer() -> Json:
    to_https = {"Protocol": "HTTPS", "Port": "443", "StatusCode": "HTTP_301"}
    attributes = {
        "deletion_protection.enabled": either(PRODUCTION, "true", "false"),
        "routing.http.drop_invalid_header_fields.enabled": "true",
        "idle_timeout.timeout_seconds": "60",
    }
    return {
        "Balancer": _made(
            "AWS::ElasticLoadBalancingV2::LoadBalancer",
            {
                "Scheme": "internet-facing",
                "Type": "application",
                "Subnets": network.balancer_subnets(),
                "SecurityGroups": [{"Fn::GetAtt": [network.BALANCER_GROUP, "GroupId"]}],
                "LoadBalancerAttributes": _keyed(attributes),
                # AWS refuses one in a VPC without a way to the internet.
                "Tags": network.after_routes(network.OWN, "PublicDefaultRoute"),
            },
        ),
        "WebTargets": _made("AWS::ElasticLoadBalancingV2::TargetGroup", _targets()),
        "HttpListener": _made(
            "AWS::ElasticLoadBalancingV2::Listener",
            {
                "LoadBalancerArn": {"Ref": "Balancer"},
                "Port": 80,
                "Protocol": "HTTP",
                "DefaultActions": [{"Type": "redirect", "RedirectConfig": to_https}],
            },
        ),
        "HttpsListener": _made(
            "AWS::ElasticLoadBalancingV2::Listener",
            {
                "LoadBalancerArn": {"Ref": "Balancer"},
                "Port": 443,
                "Protocol": "HTTPS",
                "SslPolicy": "ELBSecurityPolicy-TLS13-1-2-2021-06",
                "Certificates": [{"CertificateArn": {"Ref": CERTIFICATE}}],
                "DefaultActions": [{"Type": "forward", "TargetGroupArn": {"Ref": "WebTargets"}}],
            },
        ),
    }


def _targets() -> Json:
    return {
        "VpcId": network.vpc(),
        "Port": PORT,
        "Protocol": "HTTP",
        "TargetType": "ip",
        "HealthCheckPath": "/readyz",
        "HealthCheckIntervalSeconds": 20,
        "HealthCheckTimeoutSeconds": 5,
        "HealthyThresholdCount": 2,
        "UnhealthyThresholdCount": 10,  # the most: an engine that is away for three minutes costs no task
        "Matcher": {"HttpCode": "200"},
        # gunicorn completes what it has begun within 20 seconds.
        "TargetGroupAttributes": _keyed({"deregistration_delay.timeout_seconds": "30"}),
    }


def _firewall() -> Json:
    def seen(name: str) -> Json:
        return {
            "CloudWatchMetricsEnabled": True,
            "MetricName": sub(f"${{AWS::StackName}}-{name}"),
            "SampledRequestsEnabled": False,  # a sample shows addresses, and tokens in them
        }

    limit = {"RateBasedStatement": {"AggregateKeyType": "IP", "Limit": {"Ref": "RequestsOfAddress"}}}
    rule = {
        "Name": "too-many",
        "Priority": 0,
        "Statement": limit,
        "Action": {"Block": {"CustomResponse": {"ResponseCode": 429}}},
        "VisibilityConfig": seen("too-many"),
    }
    return {
        "Firewall": _made(
            "AWS::WAFv2::WebACL",
            {
                "Scope": "REGIONAL",
                "Description": "Blocks network addresses that ask too often",
                "DefaultAction": {"Allow": {}},
                "VisibilityConfig": seen("firewall"),
                "Rules": [rule],
            },
        ),
        "FirewallOfBalancer": _made(
            "AWS::WAFv2::WebACLAssociation", {"ResourceArn": {"Ref": "Balancer"}, "WebACLArn": arn("Firewall")}
        ),
    }


def _execution() -> Json:
    """Declare the role by which ECS itself fetches the image and writes the log."""
    layers = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    statements = [
        allow("EnterRegistry", ["ecr:GetAuthorizationToken"], "*"),
        allow("FetchImage", layers, sub(_ACCOUNT % "ecr" + "repository/*")),
        allow("WriteLog", ["logs:CreateLogStream", "logs:PutLogEvents"], arn(WEB_LOG)),
    ]
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "ecs-tasks.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
    }
    return {
        WEB_LOG: _made(
            "AWS::Logs::LogGroup", {"LogGroupName": sub("/ecs/${AWS::StackName}-web"), "RetentionInDays": 30}
        ),
        "ExecutionRole": _made(
            "AWS::IAM::Role",
            {
                "Description": "ECS fetches the image and writes the log",
                "AssumeRolePolicyDocument": document(trust),
                "Policies": [{"PolicyName": "start", "PolicyDocument": document(*statements)}],
            },
        ),
    }


def environment() -> dict[str, Any]:
    """Return the variables of the web processes, and of commands that run as their task."""
    address = {"Ref": "PortalBaseUrl"}
    by_ses = sub("ses://${AWS::Region}?configuration_set=${AWS::StackName}-mail")
    return {
        "AWS_REGION": {"Ref": "AWS::Region"},
        "DYNAMODB_TABLE_PREFIX": {"Ref": "TablePrefix"},
        "TENANT_ROLE_ARN": arn(template.TENANT),
        "AWS_ACCOUNT_ID": {"Ref": "AWS::AccountId"},
        "AWS_SECRETS": parts.secrets_named(parts.SIGNING, parts.ENCRYPTION, parts.CERTIFICATE),
        "PORTAL_BASE_URL": address,
        # https://desk.example.com
        "ALLOWED_HOSTS": {"Fn::Select": [2, {"Fn::Split": ["/", address]}]},
        "BEHIND_TLS_PROXY": "true",
        "TRUSTED_PROXIES": "1",
        "MAIL_BUCKET": {"Ref": parts.BUCKET},
        "MAIL_DOMAIN": either("MailComesIn", {"Ref": "MailDomain"}, ""),
        # Functions send the mail; the portal asks SES about desks' own domains.
        "EMAIL_URL": either("MailBySes", by_ses, "smtp://localhost:25"),
        "DEFAULT_FROM_EMAIL": {"Ref": "DefaultFromEmail"},
        "FILE_SCANNER": {"Ref": object_bucket.SCANNER},
        "SILOS": {"Ref": parts.SILOS},
        "DELIVERY_WORKERS": "0",
        "WEB_CONCURRENCY": of_size(_PROCESSES),
    }


def _container() -> Json:
    log = {
        "awslogs-group": {"Ref": WEB_LOG},
        "awslogs-region": {"Ref": "AWS::Region"},
        "awslogs-stream-prefix": "web",
    }
    return {
        "Name": "web",
        "Image": {"Ref": parts.IMAGE},
        "Essential": True,
        "User": "10001:10001",
        "ReadonlyRootFilesystem": True,
        "MountPoints": [{"SourceVolume": "uploads", "ContainerPath": "/tmp", "ReadOnly": False}],  # noqa: S108
        "PortMappings": [{"ContainerPort": PORT, "Protocol": "tcp"}],
        "StopTimeout": 40,
        "LinuxParameters": {"InitProcessEnabled": True},
        "Environment": [{"Name": name, "Value": value} for name, value in environment().items()],
        "HealthCheck": {
            "Command": ["CMD", "python3", "-c", _LIVE],
            "Interval": 10,
            "Timeout": 5,
            "Retries": 3,
            "StartPeriod": 30,
        },
        "LogConfiguration": {"LogDriver": "awslogs", "Options": log},
    }


def _task(web_role: str) -> Json:
    return {
        "Family": sub("${AWS::StackName}-web"),
        "RequiresCompatibilities": ["FARGATE"],
        "NetworkMode": "awsvpc",
        "Cpu": of_size(_CPU),
        "Memory": of_size(_MEMORY),
        "RuntimePlatform": {
            "CpuArchitecture": either(parts.ON_ARM, "ARM64", "X86_64"),
            "OperatingSystemFamily": "LINUX",
        },
        "ExecutionRoleArn": arn("ExecutionRole"),
        "TaskRoleArn": arn(web_role),
        "Volumes": [{"Name": "uploads"}],
        "ContainerDefinitions": [_container()],
    }


def _tasks(web_role: str) -> Json:
    breaker = {"Enable": True, "Rollback": True}
    in_network = {
        "Subnets": network.task_subnets(),
        "SecurityGroups": [{"Fn::GetAtt": [network.TASK_GROUP, "GroupId"]}],
        "AssignPublicIp": either(network.PUBLIC_TASKS, "ENABLED", "DISABLED"),
    }
    return {
        "Cluster": _made("AWS::ECS::Cluster", {"ClusterName": sub("${AWS::StackName}-cluster")}),
        "WebTask": _made("AWS::ECS::TaskDefinition", _task(web_role)),
        "Web": _made(
            "AWS::ECS::Service",
            {
                "ServiceName": sub("${AWS::StackName}-web"),
                "Cluster": {"Ref": "Cluster"},
                "TaskDefinition": {"Ref": "WebTask"},
                "LaunchType": "FARGATE",
                "PlatformVersion": "LATEST",
                # No DesiredCount: each update of the stack would set it anew, whatever autoscaling has found.
                "NetworkConfiguration": {"AwsvpcConfiguration": in_network},
                "LoadBalancers": [
                    {"ContainerName": "web", "ContainerPort": PORT, "TargetGroupArn": {"Ref": "WebTargets"}}
                ],
                "HealthCheckGracePeriodSeconds": 120,
                "DeploymentConfiguration": {
                    "MinimumHealthyPercent": 100,
                    "MaximumPercent": 200,
                    "DeploymentCircuitBreaker": breaker,
                },
                "EnableECSManagedTags": True,
                "Tags": network.after_routes(network.OWN_NAT, *network.PRIVATE_ROUTES),
                "PropagateTags": "SERVICE",
            },
            DependsOn=[
                "HttpsListener",
                parts.READ_SECRETS,
                "AssumeTenantPolicy",
                *template.policy_ids("platform"),
            ],
        ),
    }


def _scaling() -> Json:
    def following(name: str, target: int, measured: Json) -> Json:
        tracking = {
            "PredefinedMetricSpecification": measured,
            "TargetValue": target,
            "ScaleInCooldown": 300,
            "ScaleOutCooldown": 60,
        }
        return _made(
            "AWS::ApplicationAutoScaling::ScalingPolicy",
            {
                "PolicyName": sub(f"${{AWS::StackName}}-{name}"),
                "PolicyType": "TargetTrackingScaling",
                "ScalingTargetId": {"Ref": "WebScaling"},
                "TargetTrackingScalingPolicyConfiguration": tracking,
            },
        )

    requests = {
        "PredefinedMetricType": "ALBRequestCountPerTarget",
        "ResourceLabel": sub("${Balancer.LoadBalancerFullName}/${WebTargets.TargetGroupFullName}"),
    }
    return {
        "WebScaling": _made(
            "AWS::ApplicationAutoScaling::ScalableTarget",
            {
                "ServiceNamespace": "ecs",
                "ScalableDimension": "ecs:service:DesiredCount",
                "ResourceId": sub("service/${Cluster}/${Web.Name}"),
                "MinCapacity": of_size(FEWEST),
                "MaxCapacity": of_size(MOST),
            },
        ),
        "WebScalingByCpu": following("cpu", 55, {"PredefinedMetricType": "ECSServiceAverageCPUUtilization"}),
        # A minute of one task; a page takes a few hundredths of a second of a processor.
        "WebScalingByRequests": following("requests", 1200, requests),
    }


def _said(name: str, statistic: str) -> Json:
    """Return a metric that web processes print in their logs."""
    return parts.metric(
        reporting.NAMESPACE, name, {reporting.PREFIX: {"Ref": "TablePrefix"}, reporting.PROCESS: "web"}, statistic
    )


def _alarms() -> Json:
    balancer = {"LoadBalancer": {"Fn::GetAtt": ["Balancer", "LoadBalancerFullName"]}}
    targets = {**balancer, "TargetGroup": {"Fn::GetAtt": ["WebTargets", "TargetGroupFullName"]}}

    def of_balancer(name: str, statistic: str, dimensions: Json = balancer) -> Json:
        return parts.metric("AWS/ApplicationELB", name, dimensions, statistic)

    failed = parts.expression(
        "IF(requests > 50, 100 * (FILL(own, 0) + FILL(of_tasks, 0)) / requests, 0)",
        requests=of_balancer("RequestCount", "Sum"),
        own=of_balancer("HTTPCode_ELB_5XX_Count", "Sum"),
        of_tasks=of_balancer("HTTPCode_Target_5XX_Count", "Sum"),
    )
    slow = of_balancer("TargetResponseTime", "p95")
    slow["ExtendedStatistic"] = slow.pop("Statistic")
    # Web processes outside the stack have no load balancer of ours, and say themselves what they answered.
    said_failed = parts.expression(
        "IF(answers > 50, 100 * errors / answers, 0)",
        answers=_said("Answers", "Sum"),
        errors=_said("AnswersWithError", "Sum"),
    )
    said_slow = _said("AnswerTime", "p95")
    said_slow["ExtendedStatistic"] = said_slow.pop("Statistic")
    return {
        "AnswersWithErrorAlarm": parts.alarm(
            "More than 2% of all requests got an error of the portal", said_failed,
            above=2, minutes=5, runbook="portal-errors", condition=ALARMED_ALONE,
        ),
        "SlowAnswersAlarm": parts.alarm(
            "A twentieth of all requests take longer than two seconds", said_slow,
            above=2000, minutes=10, runbook="portal-slow", condition=ALARMED_ALONE,
        ),
        "PortalErrorsAlarm": parts.alarm(
            "More than 2% of all requests got an error of the portal or the load balancer",
            failed,
            above=2,
            minutes=5,
            runbook="portal-errors",
            condition=ALARMED,
        ),
        "PortalSlowAlarm": parts.alarm(
            "A twentieth of all requests take longer than two seconds", slow,
            above=2, minutes=10, runbook="portal-slow", condition=ALARMED,
        ),
        "PortalUnreadyAlarm": parts.alarm(
            "A web task is not ready", of_balancer("UnHealthyHostCount", "Maximum", targets),
            above=0, minutes=10, runbook="portal-unready", condition=ALARMED,
        ),
    }  # fmt: skip


def _keyed(attributes: dict[str, Any]) -> list[Json]:
    return [{"Key": key, "Value": value} for key, value in attributes.items()]


OUTPUTS: Final[Json] = {
    name: {"Condition": HAS_IMAGE, "Description": description, "Value": value}
    for name, description, value in (
        ("BalancerName", "PortalBaseUrl's host is a CNAME of it", {"Fn::GetAtt": ["Balancer", "DNSName"]}),
        ("ClusterName", "The ECS cluster", {"Ref": "Cluster"}),
        ("WebTaskArn", "The task of the web service, for commands", {"Ref": "WebTask"}),
        ("TaskSubnetIds", "Where its tasks run", {"Fn::Join": [",", network.task_subnets()]}),
        ("TaskGroupId", "The security group of its tasks", {"Fn::GetAtt": [network.TASK_GROUP, "GroupId"]}),
        ("TasksArePublic", "AssignPublicIp of its tasks", either(network.PUBLIC_TASKS, "ENABLED", "DISABLED")),
    )
}
