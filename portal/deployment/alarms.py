"""Describe CloudWatch alarms in one way. They are there where the stack is told whom they go to: AlarmTopic.

Sources: AWS, "AWS::CloudWatch::Alarm", "Configuring how CloudWatch alarms treat missing data", "Visualizing
your service quotas and setting alarms".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from portal.deployment.lambda_functions import NOT_GIVEN, ON_LAMBDA
from portal.deployment.parts import StackPart, declare

Json = dict[str, Any]

TOPIC: Final = "AlarmTopic"
WANTED: Final = "HasAlarmTopic"
WANTED_OF_POLLERS: Final = "HasAlarmTopicAndPollers"
WANTED_OF_FUNCTIONS: Final = "HasAlarmTopicAndFunctions"
_TABLE_COUNT: Final = {"Service": "DynamoDB", "Type": "Resource", "Resource": "TableCount", "Class": "None"}


def alarm(
    description: str,
    watched: Json,
    *,
    above: float,
    minutes: int,
    silence_is_bad: bool = False,
    condition: str = WANTED,
) -> Json:
    """Declare an alarm that rings after so many minutes one after the other in which `watched`, a metric or several
    with an expression, was more than `above`. With `silence_is_bad` a minute without a value counts as well."""
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Condition": condition,
        "Properties": {
            "AlarmDescription": description,
            **watched,
            "ComparisonOperator": "GreaterThanThreshold",
            "Threshold": above,
            "EvaluationPeriods": minutes,
            "TreatMissingData": "breaching" if silence_is_bad else "notBreaching",
            "AlarmActions": [{"Ref": TOPIC}],
            "OKActions": [{"Ref": TOPIC}],
        },
    }


def metric(namespace: str, name: str, dimensions: Mapping[str, Any], statistic: str) -> Json:
    """Return a metric as an alarm watches it, each minute."""
    return {
        "Namespace": namespace,
        "MetricName": name,
        "Dimensions": _named(dimensions),
        "Statistic": statistic,
        "Period": 60,
    }


def expression(text: str, **sums: Json) -> Json:
    """Return an expression over sums, each a metric, by the names that they have in it."""
    terms = [
        {
            "Id": name,
            "ReturnData": False,
            "MetricStat": {
                "Metric": {key: one[key] for key in ("Namespace", "MetricName", "Dimensions")},
                "Period": one["Period"],
                "Stat": one["Statistic"],
            },
        }
        for name, one in sums.items()
    ]
    return {"Metrics": [{"Id": "watched", "Expression": text, "ReturnData": True}, *terms]}


def iterator_age_alarm(function: str) -> Json:
    """Declare the alarm of a function that reads a stream and is more than two and a half minutes behind."""
    age = metric("AWS/Lambda", "IteratorAge", {"FunctionName": {"Ref": function}}, "Maximum")
    description = f"{function} is more than 150 seconds behind its stream"
    return alarm(description, age, above=150_000, minutes=5, condition=WANTED_OF_FUNCTIONS)


def _tables_alarm() -> Json:
    """Declare the alarm of an account that has nearly as many tables in its region as AWS allows."""
    counted = metric("AWS/Usage", "ResourceCount", _TABLE_COUNT, "Maximum") | {"Period": 300}
    description = "The account has more than 80% of the DynamoDB tables that AWS allows it in this region"
    return alarm(description, expression("100 * tables / SERVICE_QUOTA(tables)", tables=counted), above=80, minutes=1)


def _named(dimensions: Mapping[str, Any]) -> list[Json]:
    return [{"Name": name, "Value": value} for name, value in dimensions.items()]


declare(
    StackPart(
        "alarms",
        resources=lambda logical_id, roles: {"TableQuotaAlarm": _tables_alarm()},
        parameters={
            TOPIC: {
                "Type": "String",
                "Description": "ARN of the SNS topic that alarms go to; without it there are no alarms",
                "Default": NOT_GIVEN,
            }
        },
        conditions={
            WANTED: {"Fn::Not": [{"Fn::Equals": [{"Ref": TOPIC}, NOT_GIVEN]}]},
            WANTED_OF_FUNCTIONS: {"Fn::And": [{"Condition": WANTED}, {"Condition": ON_LAMBDA}]},
            WANTED_OF_POLLERS: {"Fn::And": [{"Condition": WANTED}, {"Fn::Not": [{"Condition": ON_LAMBDA}]}]},
        },
    )
)
