"""Declare the part of the template that sends mail by Amazon SES and learns what bounced, for those who choose that.

SES tells an SNS topic, the topic a queue, and the queue a worker (`note_bounces`) or, where the workers are functions,
one of those. The identity that mail is sent from is verified by hand: it takes entries in a domain.

Sources: AWS, "Set up an Amazon SNS event destination", "Configuring Amazon SNS subscriptions to Amazon SQS queues",
"Actions, resources, and condition keys for Amazon SES".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from delivery.mail.stored import BOUNCES
from portal.deployment import parts, template
from portal.deployment.parts import NOT_GIVEN, ON_LAMBDA, FunctionPart, StackPart, arn, declare, needs, resource
from portal.deployment.template import sub
from portal.schema.tables import Table

Json = dict[str, Any]

_BY_SES, _ON_LAMBDA = "MailBySes", "BouncesAreFunction"
_BY_SES_IS_CHOSEN: Final = {"Fn::Equals": [{"Ref": "MailService"}, "ses"]}
_SET, _TOPIC, _QUEUE = "MailConfigurationSet", "MailTopic", "BouncesQueue"
_SECONDS: Final = 60  # of one invocation, and until the queue shows its messages again
_BOUNCES: Final = FunctionPart(
    "Bounces",
    "bounces",
    "Notes which addresses mail does not reach",
    "delivery.lambda_handlers.bounce_handler",
    timeout=_SECONDS,
    secrets=(parts.SIGNING, parts.ENCRYPTION),
    environ={"TENANT_ROLE_ARN": arn(template.TENANT)},
)
_DASHED: Final = {"Fn::Join": ["-", {"Fn::Split": [".", {"Ref": "TablePrefix"}]}]}
_SET_ARN: Final = sub(
    "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:configuration-set/${AWS::StackName}-mail"
)


def _resources(logical_id: Callable[[Table], str], roles: dict[str, str]) -> Json:
    carrier = roles["delivery"]
    from_topic = {"ArnEquals": {"aws:SourceArn": {"Ref": _TOPIC}}}
    from_ses = {
        "StringEquals": {"AWS:SourceAccount": {"Ref": "AWS::AccountId"}},
        "ArnEquals": {"AWS:SourceArn": _SET_ARN},
    }
    publishing = _may("SesTells", "ses.amazonaws.com", "sns:Publish", {"Ref": _TOPIC}, from_ses)
    sending = _may("TopicTells", "sns.amazonaws.com", "sqs:SendMessage", arn(_QUEUE), from_topic)
    return {
        _SET: _ses("AWS::SES::ConfigurationSet", {"Name": sub("${AWS::StackName}-mail")}),
        _TOPIC: _ses("AWS::SNS::Topic", {"TopicName": sub("${AWS::StackName}-mail")}),
        f"{_TOPIC}Policy": _ses(
            "AWS::SNS::TopicPolicy",
            {
                "Topics": [{"Ref": _TOPIC}],
                "PolicyDocument": publishing,
            },
        ),
        "MailEvents": _ses("AWS::SES::ConfigurationSetEventDestination", _events())
        | {"DependsOn": [f"{_TOPIC}Policy"]},
        _QUEUE: _ses("AWS::SQS::Queue", _queue()),
        f"{_QUEUE}Policy": _ses(
            "AWS::SQS::QueuePolicy",
            {
                "Queues": [{"Ref": _QUEUE}],
                "PolicyDocument": sending,
            },
        ),
        f"{_QUEUE}Subscription": _ses("AWS::SNS::Subscription", _subscription()),
        "SendMailPolicy": _ses("AWS::IAM::ManagedPolicy", _sending(carrier)),
        "SendingDomainsPolicy": _ses("AWS::IAM::ManagedPolicy", _domains(roles["platform"])),
        **_function(carrier),
    }


def _ses(kind: str, properties: Json, condition: str = _BY_SES) -> Json:
    return {"Type": kind, "Condition": condition, "Properties": properties}


def _events() -> Json:
    return {
        "ConfigurationSetName": {"Ref": _SET},
        "EventDestination": {
            "Name": "bounces",
            "Enabled": True,
            "MatchingEventTypes": ["bounce", "complaint"],
            "SnsDestination": {"TopicARN": {"Ref": _TOPIC}},
        },
    }


def _queue() -> Json:
    return {
        "QueueName": {"Fn::Sub": [f"${{Dashed}}-{BOUNCES}", {"Dashed": _DASHED}]},
        "MessageRetentionPeriod": 14 * 86400,
        "VisibilityTimeout": _SECONDS,
        "SqsManagedSseEnabled": True,
    }


def _subscription() -> Json:
    return {
        "TopicArn": {"Ref": _TOPIC},
        "Protocol": "sqs",
        "Endpoint": arn(_QUEUE),
        "RawMessageDelivery": True,
    }


def _sending(carrier: str) -> Json:
    identities = sub("arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:identity/*")
    statement = {
        "Sid": "SendMail",
        "Effect": "Allow",
        "Action": ["ses:SendEmail", "ses:SendRawEmail"],
        "Resource": [identities, _SET_ARN],
    }
    return {
        "Description": "Send mail by Amazon SES",
        "Roles": [{"Ref": carrier}],
        "PolicyDocument": _document(statement),
    }


def _domains(web: str) -> Json:
    identities = sub("arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:identity/*")
    statement = {
        "Sid": "SetUpDomains",
        "Effect": "Allow",
        "Action": ["ses:CreateEmailIdentity", "ses:GetEmailIdentity"],
        "Resource": [identities],
    }
    return {
        "Description": "Set up and look at the domains that desks send mail from",
        "Roles": [{"Ref": web}],
        "PolicyDocument": _document(statement),
    }


def _function(carrier: str) -> Json:
    mapping = {
        "EventSourceArn": arn(_QUEUE),
        "FunctionName": {"Ref": _BOUNCES.function},
        "BatchSize": 10,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": {"MaximumConcurrency": 2},
    }
    found = _BOUNCES.resources(carrier, after=template.policy_ids("delivery"))
    found[f"{_QUEUE}Source"] = resource("AWS::Lambda::EventSourceMapping", mapping)
    return {name: {**one, "Condition": _ON_LAMBDA} for name, one in found.items()}


def _may(sid: str, service: str, action: str, on: Json, when: Json) -> Json:
    """Return the document that lets a service do this to a resource."""
    return _document(
        {
            "Sid": sid,
            "Effect": "Allow",
            "Principal": {"Service": service},
            "Action": action,
            "Resource": on,
            "Condition": when,
        }
    )


def _document(statement: Json) -> Json:
    return {"Version": "2012-10-17", "Statement": [statement]}


declare(
    StackPart(
        "mail",
        resources=_resources,
        parameters={
            "MailService": {
                "Type": "String",
                "Description": "ses: mail goes out by Amazon SES of this account and region, which tells what bounced",
                "Default": "smtp",
                "AllowedValues": ["smtp", "ses"],
            },
            "EmailUrl": {
                "Type": "String",
                "Description": "With Lambda: EMAIL_URL of what delivers, where MailService is smtp",
                "NoEcho": True,
                "Default": NOT_GIVEN,
            },
        },
        rules={"MailIsSent": needs("EmailUrl", "or MailService=ses", unless=_BY_SES_IS_CHOSEN)},
        conditions={
            _BY_SES: _BY_SES_IS_CHOSEN,
            _ON_LAMBDA: {"Fn::And": [{"Condition": _BY_SES}, {"Condition": ON_LAMBDA}]},
        },
    )
)
