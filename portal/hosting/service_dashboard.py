"""Declare the CloudWatch dashboard: the portal from outside to inside, on one page.

Source: AWS, "Dashboard body structure and syntax".
"""

from __future__ import annotations

import json
from typing import Any, Final

from portal.deployment.parts import HAS_IMAGE, Json
from portal.load.reporting import LAG, METRICS, NAMESPACE

_WIDTH, _HEIGHT = 8, 6  # of a graph; a row has 24 columns
_BALANCER: Final = ["LoadBalancer", "${Balancer.LoadBalancerFullName}"]
_TARGETS: Final = ["TargetGroup", "${WebTargets.TargetGroupFullName}", *_BALANCER]
_SERVICE: Final = ["ServiceName", "${Web.Name}", "ClusterName", "${Cluster}"]


def _elb(name: str, label: str, statistic: str = "Sum", of: list[str] = _BALANCER) -> list[Any]:
    return ["AWS/ApplicationELB", name, *of, {"label": label, "stat": statistic}]


def _found(
    namespace: str, dimension: str, name: str, statistic: str, label: str, of: str = "${AWS::StackName}"
) -> Json:
    """Return an expression over all metrics of a name whose dimension has the stack's name in it."""
    search = f'SEARCH(\'{{{namespace},{dimension}}} MetricName="{name}" {dimension}="{of}"\', "{statistic}", 60)'
    joined = "MAX" if statistic == "Maximum" else "SUM"
    return {"expression": f"{joined}({search})", "label": label}


def graphs() -> dict[str, list[Any]]:
    """Return the metrics of each graph, by its title."""
    ours = [
        [{"expression": f'SUM(SEARCH(\'Namespace="{NAMESPACE}" MetricName="{metric}"\', "Sum", 60))', "label": metric}]
        for metric in METRICS.values()
    ]
    late = f'MAX(SEARCH(\'Namespace="{NAMESPACE}" MetricName="{LAG}"\', "Maximum", 60))'
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
        "The portal's own counts": ours,
        "Seconds behind the streams": [[{"expression": late, "label": "processes"}]],
        "Workers: failed and held back": [
            [_found("AWS/Lambda", "FunctionName", name, "Sum", label)]
            for name, label in (("Errors", "failed"), ("Throttles", "held back"))
        ],
        "Workers: milliseconds behind their stream": [
            [_found("AWS/Lambda", "FunctionName", "IteratorAge", "Maximum", "functions")]
        ],
        "Queues: seconds of the oldest message": [
            [_found("AWS/SQS", "QueueName", "ApproximateAgeOfOldestMessage", "Maximum", "oldest", "${Dashed}")]
        ],
        "Queues: messages": [
            [_found("AWS/SQS", "QueueName", "ApproximateNumberOfMessagesVisible", "Maximum", "in one", "${Dashed}")]
        ],
        "Firewall": [
            [
                "AWS/WAFV2", "BlockedRequests", "Region", "${AWS::Region}", "Rule", "${AWS::StackName}-too-many",
                "WebACL", "${AWS::StackName}-firewall", {"label": "blocked", "stat": "Sum"},
            ]
        ],
        "DynamoDB: refused for its limits": [
            [{"expression": "SUM(SEARCH('{AWS/DynamoDB,TableName} MetricName=\"ThrottledRequests\" "
              "TableName=\"${TablePrefix}\"', \"Sum\", 60))", "label": "throttled"}]
        ],
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
