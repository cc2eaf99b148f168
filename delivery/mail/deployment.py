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
from portal.deployment.parts import NOT_GIVEN, ON_LAMBDA, FunctionPart, StackPart, arn, declare, needs
from portal.deployment.template import sub
from portal.schema.registry import Table

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
_SET_ARN: Final = sub(
    "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:configuration-set/${AWS::StackName}-mail"
)


def _resources(logical_id: Callable[[Table], str], roles: dict[str, str]) -> Json:
    carrier = roles["delivery"]
    from_ses = {
        "StringEquals": {"AWS:SourceAccount": {"Ref": "AWS::AccountId"}},
        "ArnEquals": {"AWS:SourceArn": _SET_ARN},
    }
    return {
        _SET: _ses("AWS::SES::ConfigurationSet", {"Name": sub("${AWS::StackName}-mail")}),
        **parts.told_queue(
            _TOPIC,
            _QUEUE,
            about="",
            named="mail",
            ended=BOUNCES,
            from_ses=from_ses,
            kept=14 * 86400,
            seconds=_SECONDS,
            condition=_BY_SES,
        ),
        "MailEvents": _ses("AWS::SES::ConfigurationSetEventDestination", _events())
        | {"DependsOn": [f"{_TOPIC}Policy"]},
        "SendMailPolicy": _ses("AWS::IAM::ManagedPolicy", _sending(carrier)),
        "SendingDomainsPolicy": _ses("AWS::IAM::ManagedPolicy", _domains(roles["platform"])),
        **_BOUNCES.of_queue(_QUEUE, carrier, after=template.policy_ids("delivery"), batch=10, condition=_ON_LAMBDA),
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


def _sending(carrier: str) -> Json:
    identities = sub("arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:identity/*")
    statement = parts.allow("SendMail", ["ses:SendEmail", "ses:SendRawEmail"], [identities, _SET_ARN])
    return parts.managed_policy("Send mail by Amazon SES", carrier, statement)


def _domains(web: str) -> Json:
    identities = sub("arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:identity/*")
    statement = parts.allow("SetUpDomains", ["ses:CreateEmailIdentity", "ses:GetEmailIdentity"], [identities])
    return parts.managed_policy("Set up and look at the domains that desks send mail from", web, statement)


declare(
    StackPart(
        "mail",
        resources=_resources,
        parameters={
            "MailService": parts.text_parameter(
                "ses: mail goes out by Amazon SES of this account and region, which tells what bounced",
                "smtp",
                AllowedValues=["smtp", "ses"],
            ),
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
            _ON_LAMBDA: parts.both(_BY_SES, ON_LAMBDA),
        },
    )
)
