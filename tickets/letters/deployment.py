"""Declare the part of the template by which letters come in: into the bucket, by Amazon SES where a domain is given.

SES puts each letter into the bucket and tells an SNS topic, the topic a queue, and the queue a worker (`run_delivery`)
or, where the workers are functions, one of those. The notification of the rule's S3 action is used and not the
bucket's own event, because it alone has the envelope's recipients and the verdicts. By hand remain the domain's MX
entry, its verification, and to make the rule set the active one: there is one of those in an account and region.

Sources: AWS, "Giving permissions to Amazon SES for email receiving", "Contents of notifications for Amazon SES email
receiving", "AWS::SES::ReceiptRule", "Deliver to S3 bucket action" (40 MB).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from delivery.queues.queue_transport import ATTRIBUTES, BATCH
from portal.deployment import object_bucket, parts, template
from portal.deployment.parts import BUCKET, NOT_GIVEN, ON_LAMBDA, FunctionPart, StackPart, arn, declare
from portal.deployment.template import sub
from portal.schema.registry import Table
from tickets.letters.stored import INCOMING, LETTERS_QUEUE, UNCLAIMED

Json = dict[str, Any]

_WANTED, _ON_LAMBDA, _ALARMED = "MailComesIn", "LettersAreFunction", "HasAlarmTopicAndMail"
_IDENTITY: Final = "MakesMailIdentity"
_TOPIC, _QUEUE, _RULES = "LettersTopic", "LettersQueue", "LettersRuleSet"
_KEPT_DAYS: Final = 90  # of letters that no desk has; long enough to notice and hand them on
_SECONDS: Final = 60
_LETTERS: Final = FunctionPart(
    "Letters",
    "letters",
    "Hands the letters that come in to the desks",
    "tickets.letters.letters_lambda.handler",
    timeout=_SECONDS,
    secrets=(parts.SIGNING, parts.ENCRYPTION),
    environ={
        "TENANT_ROLE_ARN": arn(template.TENANT),
        "MAIL_BUCKET": {"Ref": BUCKET},
        "FILE_SCANNER": {"Ref": object_bucket.SCANNER},
        "MAIL_DOMAIN": {"Ref": "MailDomain"},
    },
)


def _resources(logical_id: Callable[[Table], str], roles: dict[str, str]) -> Json:
    from_ses = {
        "StringEquals": {"AWS:SourceAccount": {"Ref": "AWS::AccountId"}},
        "ArnLike": {
            "AWS:SourceArn": sub(
                "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:receipt-rule-set/${AWS::StackName}-*"
            )
        },
    }
    return {
        f"{BUCKET}Policy": {
            "Type": "AWS::S3::BucketPolicy",
            "Properties": {
                "Bucket": {"Ref": BUCKET},
                "PolicyDocument": parts.document(
                    _over_tls_alone(),
                    parts.service_may(
                        "SesPutsLetters", "ses.amazonaws.com", "s3:PutObject", _objects(INCOMING), from_ses
                    ),
                ),
            },
        },
        **parts.told_queue(
            _TOPIC,
            _QUEUE,
            about="OfLetters",
            named="letters",
            ended=LETTERS_QUEUE,
            from_ses=from_ses,
            kept=int(ATTRIBUTES["MessageRetentionPeriod"]),
            seconds=_SECONDS,
            condition=_WANTED,
        ),
        f"{_QUEUE}AgeAlarm": _alarm(),
        "MailDomainIdentity": _incoming("AWS::SES::EmailIdentity", {"EmailIdentity": {"Ref": "MailDomain"}}, _IDENTITY),
        _RULES: _incoming("AWS::SES::ReceiptRuleSet", {"RuleSetName": sub("${AWS::StackName}-letters")}),
        "LettersRule": _incoming("AWS::SES::ReceiptRule", _rule())
        | {"DependsOn": [f"{BUCKET}Policy", f"{_TOPIC}Policy"]},
        **_LETTERS.of_queue(
            _QUEUE, roles["delivery"], after=template.policy_ids("delivery"), batch=BATCH, condition=_ON_LAMBDA
        ),
    }


def _incoming(kind: str, properties: Json, condition: str = _WANTED) -> Json:
    return {"Type": kind, "Condition": condition, "Properties": properties}


def _objects(prefix: str = "") -> Json:
    return sub(f"arn:${{AWS::Partition}}:s3:::${{{BUCKET}}}/{prefix}*")


def _over_tls_alone() -> Json:
    return {
        "Sid": "OverTlsAlone",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [arn(BUCKET), _objects()],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def _rule() -> Json:
    return {
        "RuleSetName": {"Ref": _RULES},
        "Rule": {
            "Name": "letters",
            "Enabled": True,
            "Recipients": [{"Ref": "MailDomain"}],
            # Verdicts on spam and viruses.
            "ScanEnabled": True,
            "TlsPolicy": "Optional",
            "Actions": [
                {
                    "S3Action": {
                        "BucketName": {"Ref": BUCKET},
                        "ObjectKeyPrefix": INCOMING,
                        "TopicArn": {"Ref": _TOPIC},
                    }
                }
            ],
        },
    }


def _alarm() -> Json:
    return parts.alarm(
        "The oldest letter waits for more than ten minutes to be handed to its desk",
        parts.metric(
            "AWS/SQS", "ApproximateAgeOfOldestMessage", {"QueueName": {"Fn::GetAtt": [_QUEUE, "QueueName"]}}, "Maximum"
        ),
        above=600,
        minutes=5,
        runbook="letters",
        condition=_ALARMED,
    )


_HAS_DOMAIN: Final = parts.given("MailDomain")

object_bucket.expire(UNCLAIMED, days=_KEPT_DAYS)
declare(
    StackPart(
        "letters",
        resources=_resources,
        parameters={
            "MailDomain": parts.text_parameter(
                "MAIL_DOMAIN of the portal: letters to addresses in it come in by Amazon SES", NOT_GIVEN
            ),
            "MailIdentity": parts.text_parameter(
                "Whether this stack makes the SES identity of MailDomain, or there is one already",
                "stack",
                AllowedValues=["stack", "there"],
            ),
        },
        conditions={
            _WANTED: _HAS_DOMAIN,
            _IDENTITY: {"Fn::And": [{"Condition": _WANTED}, {"Fn::Equals": [{"Ref": "MailIdentity"}, "stack"]}]},
            _ON_LAMBDA: parts.both(_WANTED, ON_LAMBDA),
            _ALARMED: parts.both(_WANTED, parts.WANTED),
        },
        outputs={
            f"Dkim{number}": {
                "Condition": _IDENTITY,
                "Description": "A CNAME entry of MailDomain and where it leads, by which its letters are signed",
                "Value": sub(
                    " ".join(f"${{MailDomainIdentity.DkimDNSToken{part}{number}}}" for part in ("Name", "Value"))
                ),
            }
            for number in (1, 2, 3)
        }
        | {
            "LettersRuleSetName": {
                "Condition": _WANTED,
                "Description": "The rule set by which letters come in, once it is the active one",
                "Value": {"Ref": _RULES},
            }
        },
    )
)
