"""Declare the parts of the CloudFormation template: a package does so in its own `deployment.py`.

Lambda functions, each with its log, and CloudWatch alarms are described in one way. Functions are there only where
workers are functions and not pollers, one choice for all of them, the parameter WorkerService; alarms where the stack
is told whom they go to, AlarmTopic.

Sources: AWS, "Creating a rule that runs on a schedule in Amazon EventBridge", "Retain discarded records for a DynamoDB
event source in Lambda", "How Lambda handles errors and retries with asynchronous invocation",
"AWS::CloudWatch::Alarm", "Configuring how CloudWatch alarms treat missing data", "Visualizing your service quotas and
setting alarms".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]


@dataclass(frozen=True)
class StackPart:
    """Sections of a template, in its own terms.

    `resources` is called with `logical_id`, which gives a table's name inside of the template, and with the logical
    ids of the roles by role name ("worker").
    """

    name: str
    resources: Callable[[Callable[[Any], str], dict[str, str]], Json]
    parameters: Json = field(default_factory=dict)
    rules: Json = field(default_factory=dict)
    conditions: Json = field(default_factory=dict)
    outputs: Json = field(default_factory=dict)


_parts: dict[str, StackPart] = {}


def declare(part: StackPart) -> None:
    _parts[part.name] = part


def parts() -> list[StackPart]:
    return [_parts[name] for name in sorted(_parts)]


SERVICE: Final = "WorkerService"
ON_LAMBDA: Final = "WorkersAreFunctions"
_LAMBDA: Final = "lambda.amazonaws.com"
SILOS: Final = "Silos"
BUCKET: Final = "ObjectBucket"  # of letters and whatever else is stored as an object
MAPPING_POLICY: Final = "MapOwnStreamsPolicy"
NOT_GIVEN: Final = "none"  # "" could be no bucket's name, which the linter notices
IMAGE: Final = "Image"
HAS_IMAGE: Final = "HasImage"
ON_ARM: Final = "OnArm"
IMAGE_GIVEN: Final[Json] = {"Fn::Not": [{"Fn::Equals": [{"Ref": IMAGE}, NOT_GIVEN]}]}
NO_VALUE: Final[Json] = {"Ref": "AWS::NoValue"}
_CONDITION: Final = {"Fn::Equals": [{"Ref": SERVICE}, _LAMBDA]}


@dataclass(frozen=True)
class FunctionPart:
    """A function, its log group, and the policy that lets its role write there.

    `id` begins their logical ids, and `name` ends the function's name behind the stack's. `timeout` is in seconds.
    `environ` is beside what all functions have. With `tells_failures` there is a queue as well, in which Lambda says
    what it has given up. `secrets` are the logical ids of the secrets that the function reads when it starts.
    """

    id: str
    name: str
    description: str
    handler: str
    timeout: int
    environ: Json = field(default_factory=dict)
    tells_failures: bool = False
    secrets: tuple[str, ...] = ()

    @property
    def function(self) -> str:
        return f"{self.id}Function"

    @property
    def failures(self) -> str:
        return f"{self.id}FailuresQueue"

    def resources(self, role: str, *, after: list[str]) -> Json:
        """Declare all of it. `role` is a logical id, and `after` are the policies that the role needs for the work."""
        log, policy = f"{self.id}LogGroup", f"{self.id}FunctionPolicy"
        # The name is ours so that the log group can be; a dot may not stand in the name of a function.
        name = f"${{AWS::StackName}}-{self.name}"
        group = {"LogGroupName": {"Fn::Sub": f"/aws/lambda/{name}"}, "RetentionInDays": 30}
        found = {
            log: resource("AWS::Logs::LogGroup", group),
            policy: resource("AWS::IAM::ManagedPolicy", self._policy(role, log)),
            self.function: resource("AWS::Lambda::Function", self._function(name, role))
            | {"DependsOn": [policy, *after, *([READ_SECRETS] if self.secrets else [])]},
        }
        if self.tells_failures:
            # What is in there are ids and sequence numbers, no data of anybody's.
            kept = {"SqsManagedSseEnabled": True, "MessageRetentionPeriod": 14 * 86400}
            found[self.failures] = resource("AWS::SQS::Queue", kept)
        return found

    def of_queue(self, queue: str, role: str, *, after: list[str], batch: int, condition: str) -> Json:
        """Declare it to take from a queue, under a condition of the template."""
        mapping = {
            "EventSourceArn": arn(queue),
            "FunctionName": {"Ref": self.function},
            "BatchSize": batch,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "ScalingConfig": {"MaximumConcurrency": 2},
        }
        found = self.resources(role, after=after)
        found[f"{queue}Source"] = resource("AWS::Lambda::EventSourceMapping", mapping)
        return {name: {**one, "Condition": condition} for name, one in found.items()}

    def outputs(self) -> Json:
        """Tell where Lambda says what it has given up."""
        return {f"{self.failures}Url": {"Condition": ON_LAMBDA, "Value": {"Ref": self.failures}}}

    def schedule(self, description: str) -> Json:
        """Declare the rule that calls the function each minute. A call that fails is not repeated: the next comes."""
        rule, called = f"{self.id}Schedule", {"Ref": self.function}
        return {
            rule: resource(
                "AWS::Events::Rule",
                {
                    "Description": description,
                    # The shortest rate that there is.
                    "ScheduleExpression": "rate(1 minute)",
                    "State": "ENABLED",
                    "Targets": [{"Id": self.name, "Arn": arn(self.function)}],
                },
            ),
            f"{rule}Permission": resource(
                "AWS::Lambda::Permission",
                {
                    "Action": "lambda:InvokeFunction",
                    "FunctionName": called,
                    "Principal": "events.amazonaws.com",
                    "SourceArn": arn(rule),
                },
            ),
            f"{rule}Retries": resource(
                "AWS::Lambda::EventInvokeConfig",
                {
                    "FunctionName": called,
                    "Qualifier": "$LATEST",
                    "MaximumRetryAttempts": 0,
                    "MaximumEventAgeInSeconds": 60,
                },
            ),
        }

    def _policy(self, role: str, log: str) -> Json:
        statements = [allow("WriteItsLog", ["logs:CreateLogStream", "logs:PutLogEvents"], arn(log))]
        if self.tells_failures:
            # Lambda sends in the name of the function's role.
            statements.append(allow("TellWhatWasGivenUp", ["sqs:SendMessage"], arn(self.failures)))
        return managed_policy(f"What the function {self.name} needs beside the rights of its role", role, *statements)

    def _function(self, name: str, role: str) -> Json:
        zipped = {"S3Bucket": {"Ref": "WorkerCodeBucket"}, "S3Key": {"Ref": "WorkerCodeKey"}}
        started = {"EntryPoint": ["python3", "-m", "awslambdaric"], "Command": [self.handler]}
        return {
            "FunctionName": {"Fn::Sub": name},
            "Description": self.description,
            "PackageType": either(HAS_IMAGE, "Image", "Zip"),
            "Runtime": either(HAS_IMAGE, NO_VALUE, "python3.13"),
            "Handler": either(HAS_IMAGE, NO_VALUE, self.handler),
            "ImageConfig": either(HAS_IMAGE, started, NO_VALUE),
            "Architectures": [either(ON_ARM, "arm64", "x86_64")],
            "Code": either(HAS_IMAGE, {"ImageUri": {"Ref": IMAGE}}, zipped),
            "Role": arn(role),
            "MemorySize": 512,
            "Timeout": self.timeout,
            "Environment": {
                # AWS_REGION is there already.
                "Variables": {
                    "DYNAMODB_TABLE_PREFIX": {"Ref": "TablePrefix"},
                    "AWS_ACCOUNT_ID": {"Ref": "AWS::AccountId"},
                    "SILOS": {"Ref": SILOS},
                    "DELIVERY_WORKERS": "0",  # Lambda takes from each queue, and reads each stream, by itself
                    **({"AWS_SECRETS": secrets_named(*self.secrets)} if self.secrets else {}),
                    **self.environ,
                }
            },
        }


READ_SECRETS: Final = "ReadSecretsPolicy"
SIGNING: Final = "SigningKeys"  # cookies, links and the addresses that people answer to
ENCRYPTION: Final = "EncryptionKey"  # of secrets at rest
CERTIFICATE: Final = "CertificateKey"  # of certificates of deletion


def secrets_named(*logical_ids: str) -> Json:
    """Return AWS_SECRETS of a process that reads these secrets."""
    return {"Fn::Join": [",", [{"Ref": name} for name in logical_ids]]}


def either(condition: str, yes: Any, no: Any) -> Json:
    return {"Fn::If": [condition, yes, no]}


def resource(kind: str, properties: Json) -> Json:
    """Return a resource that is there only where workers are functions."""
    return {"Type": kind, "Condition": ON_LAMBDA, "Properties": properties}


def arn(name: str) -> Json:
    return {"Fn::GetAtt": [name, "Arn"]}


def service_may(sid: str, service: str, action: str, on: Json, when: Json) -> Json:
    """Return the statement that lets a service do this to a resource."""
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": action,
        "Resource": on,
        "Condition": when,
    }


def document(*statements: Json) -> Json:
    return {"Version": "2012-10-17", "Statement": [*statements]}


def allow(sid: str, actions: list[str], on: Any, when: Json | None = None) -> Json:
    """Return the statement that allows these actions on a resource, or on several."""
    statement = {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": on}
    return {**statement, "Condition": when} if when else statement


def managed_policy(description: str, role: str, *statements: Json) -> Json:
    """Return the properties of a policy of one role, by its logical id."""
    return {"Description": description, "Roles": [{"Ref": role}], "PolicyDocument": document(*statements)}


def text_parameter(description: str, default: str = NOT_GIVEN, **more: Any) -> Json:
    """Return a parameter of the template. `more` are further properties, such as AllowedValues."""
    return {"Type": "String", "Description": description, "Default": default, **more}


def given(parameter: str, nothing: str = NOT_GIVEN) -> Json:
    """Return the condition that a parameter is given: its value is not the one that stands for nothing."""
    return {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, nothing]}]}


def both(*conditions: str) -> Json:
    return {"Fn::And": [{"Condition": name} for name in conditions]}


def told_queue(
    topic: str,
    queue: str,
    *,
    about: str,
    named: str,
    ended: str,
    from_ses: Json,
    kept: int,
    seconds: int,
    condition: str,
) -> Json:
    """Declare a topic that Amazon SES tells, and the queue that the topic tells.

    `about` ends the names of their statements, `named` that of the topic and `ended` that of the queue. Messages are
    `kept` for so many seconds, and hidden for `seconds` while one is worked on.
    """
    publishing = service_may(f"SesTells{about}", "ses.amazonaws.com", "sns:Publish", {"Ref": topic}, from_ses)
    from_topic = {"ArnEquals": {"aws:SourceArn": {"Ref": topic}}}
    sending = service_may(f"TopicTells{about}", "sns.amazonaws.com", "sqs:SendMessage", arn(queue), from_topic)
    subscription = {"TopicArn": {"Ref": topic}, "Protocol": "sqs", "Endpoint": arn(queue), "RawMessageDelivery": True}
    dashed = {"Fn::Join": ["-", {"Fn::Split": [".", {"Ref": "TablePrefix"}]}]}
    attributes = {
        "QueueName": {"Fn::Sub": [f"${{Dashed}}-{ended}", {"Dashed": dashed}]},
        "MessageRetentionPeriod": kept,
        "VisibilityTimeout": seconds,
        "SqsManagedSseEnabled": True,
    }
    found = {
        topic: ("SNS::Topic", {"TopicName": {"Fn::Sub": f"${{AWS::StackName}}-{named}"}}),
        f"{topic}Policy": ("SNS::TopicPolicy", {"Topics": [{"Ref": topic}], "PolicyDocument": document(publishing)}),
        queue: ("SQS::Queue", attributes),
        f"{queue}Policy": ("SQS::QueuePolicy", {"Queues": [{"Ref": queue}], "PolicyDocument": document(sending)}),
        f"{queue}Subscription": ("SNS::Subscription", subscription),
    }
    return {
        name: {"Type": f"AWS::{kind}", "Condition": condition, "Properties": properties}
        for name, (kind, properties) in found.items()
    }


def _parameters() -> Json:
    return {
        SERVICE: text_parameter(
            "Where the workers run: pollers on ECS or EC2, or Lambda functions of this stack",
            "ecs-tasks.amazonaws.com",
            AllowedValues=["ecs-tasks.amazonaws.com", "ec2.amazonaws.com", _LAMBDA],
        ),
        "WorkerCodeBucket": text_parameter("With Lambda, without Image: the S3 bucket that holds the functions' zip"),
        "WorkerCodeKey": text_parameter(
            "With Lambda, without Image: the key of the zip in that bucket", "pooldesk.zip"
        ),
        IMAGE: text_parameter("The image of web service and functions, in Amazon ECR of this account and region"),
        "Processor": text_parameter(
            "What the image, or the zip, is built for", "x86_64", AllowedValues=["x86_64", "arm64"]
        ),
        SILOS: text_parameter("With Lambda: SILOS of the portal, the sites at which tenants have silos, as JSON", "{}"),
    }


def _mapping_policy(role: str) -> Json:
    """Let a role have functions of this stack read the streams of tenants' own tables, which it makes and deletes."""
    ours = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}-*"
    statements = [
        allow("FindMappings", ["lambda:ListEventSourceMappings"], "*"),
        {
            "Sid": "MapOwnStreams",
            "Effect": "Allow",
            "Action": ["lambda:CreateEventSourceMapping", "lambda:DeleteEventSourceMapping"],
            "Resource": "*",  # a mapping's ARN is not known before it is made
            "Condition": {"StringLike": {"lambda:FunctionArn": {"Fn::Sub": ours}}},
        },
    ]
    policy = managed_policy("Let functions of this stack read the streams of tenants' own tables", role, *statements)
    return resource("AWS::IAM::ManagedPolicy", policy)


def needs(parameter: str, what: str, *, unless: Json | None = None) -> Json:
    """Return the rule that refuses a stack with functions and without this parameter, before anything is made.

    `unless` is an expression: where it is true, the parameter is not needed.
    """
    condition = {"Fn::And": [_CONDITION, {"Fn::Not": [unless]}]} if unless else _CONDITION
    given = {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, NOT_GIVEN]}]}
    said = f"{SERVICE}={_LAMBDA} needs {parameter}, {what}"
    return {"RuleCondition": condition, "Assertions": [{"Assert": given, "AssertDescription": said}]}


declare(
    StackPart(
        "functions",
        resources=lambda logical_id, roles: {MAPPING_POLICY: _mapping_policy(roles["lifecycle"])},
        parameters=_parameters(),
        rules={"FunctionHasCode": needs("WorkerCodeBucket", "and the zip in it, or Image", unless=IMAGE_GIVEN)},
        conditions={
            ON_LAMBDA: _CONDITION,
            HAS_IMAGE: IMAGE_GIVEN,
            ON_ARM: {"Fn::Equals": [{"Ref": "Processor"}, "arm64"]},
        },
    )
)


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
    runbook: str,
    silence_is_bad: bool = False,
    condition: str = WANTED,
) -> Json:
    """Declare an alarm that rings after so many minutes one after the other in which `watched`, a metric or several
    with an expression, was more than `above`. With `silence_is_bad` a minute without a value counts as well.
    `runbook` names the page in docs/runbooks/ for whoever hears it."""
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Condition": condition,
        "Properties": {
            "AlarmDescription": f"{description}. Runbook: docs/runbooks/{runbook}.md",
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


def iterator_age_alarm(function: str, *, runbook: str) -> Json:
    """Declare the alarm of a function that reads a stream and is more than two and a half minutes behind."""
    age = metric("AWS/Lambda", "IteratorAge", {"FunctionName": {"Ref": function}}, "Maximum")
    description = f"{function} is more than 150 seconds behind its stream"
    return alarm(description, age, above=150_000, minutes=5, runbook=runbook, condition=WANTED_OF_FUNCTIONS)


def _tables_alarm() -> Json:
    """Declare the alarm of an account that has nearly as many tables in its region as AWS allows."""
    counted = metric("AWS/Usage", "ResourceCount", _TABLE_COUNT, "Maximum") | {"Period": 300}
    description = "The account has more than 80% of the DynamoDB tables that AWS allows it in this region"
    share = expression("100 * tables / SERVICE_QUOTA(tables)", tables=counted)
    return alarm(description, share, above=80, minutes=1, runbook="table-quota")


def _named(dimensions: Mapping[str, Any]) -> list[Json]:
    return [{"Name": name, "Value": value} for name, value in dimensions.items()]


declare(
    StackPart(
        "alarms",
        resources=lambda logical_id, roles: {"TableQuotaAlarm": _tables_alarm()},
        parameters={TOPIC: text_parameter("ARN of the SNS topic that alarms go to; without it there are no alarms")},
        conditions={
            WANTED: {"Fn::Not": [{"Fn::Equals": [{"Ref": TOPIC}, NOT_GIVEN]}]},
            WANTED_OF_FUNCTIONS: both(WANTED, ON_LAMBDA),
            WANTED_OF_POLLERS: {"Fn::And": [{"Condition": WANTED}, {"Fn::Not": [{"Condition": ON_LAMBDA}]}]},
        },
    )
)
