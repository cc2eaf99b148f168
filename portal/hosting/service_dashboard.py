"""Declare the CloudWatch dashboard: the portal from outside to inside, on one page.

Source: AWS, "Dashboard body structure and syntax".
"""

from __future__ import annotations

import json
from typing import Any, Final

from portal.deployment import parts, template
from portal.deployment.parts import HAS_IMAGE, Json
from portal.load.reporting import METRICS, NAMESPACE, PREFIX
from portal.schema import registry

PART: Final = "web service"  # this one's own, which has the dashboard

_WIDTH, _HEIGHT = 8, 6  # of a graph; a row has 24 columns
_BALANCER: Final = ["LoadBalancer", "${Balancer.LoadBalancerFullName}"]
_TARGETS: Final = ["TargetGroup", "${WebTargets.TargetGroupFullName}", *_BALANCER]
_SERVICE: Final = ["ServiceName", "${Web.Name}", "ClusterName", "${Cluster}"]


def _elb(name: str, label: str, statistic: str = "Sum", of: list[str] = _BALANCER) -> list[Any]:
    return ["AWS/ApplicationELB", name, *of, {"label": label, "stat": statistic}]


def _names(kind: str, of: str) -> list[str]:
    """Return the names that resources of this kind have in the template, as a substitution reads them."""
    declared = [part.resources(template.logical_id, template.BY_NAME) for part in parts.parts() if part.name != PART]
    named = [
        one["Properties"][of]["Fn::Sub"]
        for part in declared
        for one in part.values()
        if one["Type"] == kind and of in one["Properties"]
    ]
    return sorted(name if isinstance(name, str) else name[0] for name in named)


def _each(namespace: str, name: str, dimension: str, names: list[str], statistic: str) -> list[list[Any]]:
    return [[namespace, name, dimension, one, {"stat": statistic}] for one in names]


def graphs() -> dict[str, list[Any]]:
    """Return the metrics of each graph, by its title."""
    functions, queues = _names("AWS::Lambda::Function", "FunctionName"), _names("AWS::SQS::Queue", "QueueName")
    installation = [PREFIX, "${TablePrefix}"]
    return {
        "Requests": [
            _elb("RequestCount", "all"),
            _elb("HTTPCode_Target_4XX_Count", "4xx"),
            _elb("HTTPCode_Target_5XX_Count", "5xx of the portal"),
            _elb("HTTPCode_ELB_5XX_Count", "5xx of the load balancer"),
        ],
        "Seconds of a request": [_elb("TargetResponseTime", name, name) for name in ("p50", "p95", "p99")],
        "Tasks": [
            _elb("HealthyHostCount", "ready", "Minimum", _TARGETS),
            _elb("UnHealthyHostCount", "not ready", "Maximum", _TARGETS),
        ],
        "Processor and memory of the tasks, percent": [
            ["AWS/ECS", name, *_SERVICE, {"label": label, "stat": "Average"}]
            for name, label in (("CPUUtilization", "processor"), ("MemoryUtilization", "memory"))
        ],
        "The portal's own counts": [[NAMESPACE, name, *installation, {"stat": "Sum"}] for name in METRICS.values()],
        "Functions: failed": _each("AWS/Lambda", "Errors", "FunctionName", functions, "Sum"),
        "Functions: held back": _each("AWS/Lambda", "Throttles", "FunctionName", functions, "Sum"),
        "Functions: milliseconds behind their stream": _each(
            "AWS/Lambda", "IteratorAge", "FunctionName", functions, "Maximum"
        ),
        "Queues: seconds of the oldest message": _each(
            "AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", queues, "Maximum"
        ),
        "Queues: messages": _each("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", queues, "Maximum"),
        "Firewall": [
            [
                "AWS/WAFV2", "BlockedRequests", "Region", "${AWS::Region}", "Rule", "${AWS::StackName}-too-many",
                "WebACL", "${AWS::StackName}-firewall", {"label": "blocked", "stat": "Sum"},
            ]
        ],
        "Tables: writes refused for a limit": _each(
            "AWS/DynamoDB", "WriteThrottleEvents", "TableName",
            [f"${{TablePrefix}}.{table.name}" for table in registry.tables()], "Sum",
        ),
    }  # fmt: skip


def resources(logical_id: Any, roles: dict[str, str]) -> Json:
    widgets = [
        {
            "type": "metric",
            "x": number % 3 * _WIDTH,
            "y": number // 3 * _HEIGHT,
            "width": _WIDTH,
            "height": _HEIGHT,
            "properties": {
                "title": title,
                "metrics": metrics,
                "region": "${AWS::Region}",
                "period": 60,
                "view": "timeSeries",
                "yAxis": {"left": {"min": 0}},
            },
        }
        for number, (title, metrics) in enumerate(graphs().items())
    ]
    body = json.dumps({"widgets": widgets}, separators=(",", ":"))
    dashed = {"Fn::Join": ["-", {"Fn::Split": [".", {"Ref": "TablePrefix"}]}]}
    return {
        "Dashboard": {
            "Type": "AWS::CloudWatch::Dashboard",
            "Condition": HAS_IMAGE,
            "Properties": {
                "DashboardName": {"Ref": "AWS::StackName"},
                "DashboardBody": {"Fn::Sub": [body, {"Dashed": dashed}]},
            },
        }
    }
