"""Make the CloudFormation template from the declarations that the code itself runs on.

The rooms declare their tables, the rights of each role and resources of their own; this module only says how AWS is
to hold them: who may assume which role, with which key the tables are encrypted, what is kept when a stack goes.
`infra/template.yaml` is its output, committed so that it can be read, linted and deployed without Python.

Sources: AWS, "Pass session tags in AWS STS" (the tenant role's trust), "DynamoDB encryption at rest usage notes" (the
key's policy), "Intrinsic function references in DeletionPolicy" (why the template needs a transform).
"""

from __future__ import annotations

from typing import Any, Final

from portal.deployment import data_events, lambda_functions, parts, stack_roles
from portal.deployment.stack_roles import (
    DELIVERY,
    HAS_SITES,
    LIFECYCLE,
    SEED,
    SITE_ROLES,
    TENANT,
    WEB,
    WORKER,
    arn,
    sub,
)
from portal.isolation import policies
from portal.schema import registry
from portal.schema.tables import Table

Json = dict[str, Any]

PRODUCTION: Final = "IsProduction"
OWN_KEY: Final = "HasOwnKey"
KEY: Final = "TableKey"

HEADER: Final = """\
# The tables and roles of Pooldesk for an AWS account. Generated: change the tables.py or deployment.py of a room, or
# portal/deployment/template.py, then run
# `python manage.py infra_template > infra/template.yaml`. A test compares the two.
#
#   aws cloudformation deploy --template-file infra/template.yaml --stack-name pooldesk-prod \\
#     --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND \\
#     --s3-bucket <a bucket of yours, for the template: it has more than 51,200 characters> \\
#     --parameter-overrides Environment=prod TablePrefix=Pooldesk.Prod
#
# The workers are processes, `manage.py run_stream` and `run_dispatch` as the worker role, `run_delivery` as the
# delivery role and `run_lifecycle` as the lifecycle role; or all of them are Lambda functions of this stack, with
#
#   WorkerService=lambda.amazonaws.com WorkerCodeBucket=<bucket> WorkerCodeKey=<key of the zip> \\
#   PortalBaseUrl=<PORTAL_BASE_URL of the portal> EmailUrl=<EMAIL_URL of the portal> \\
#   DefaultFromEmail=<DEFAULT_FROM_EMAIL of the portal>
#
# The zip holds portal/, tenants/, delivery/, tickets/, api/, templates/ and what
# `pip install --target . -r requirements.txt` brings for Linux on x86_64. Both at the same time count nothing twice,
# send some events twice, and cost twice.
#
# The portal then needs DYNAMODB_TABLE_PREFIX=<TablePrefix>, TENANT_ROLE_ARN=<output TenantRoleArn>, AWS_REGION and
# AWS_ACCOUNT_ID, and it runs as the web role. It creates no table there: no role may.
#
# prod  Tables and key stay when the stack or a resource is removed. No table can be deleted while its protection is
#       on, and each can be restored to any second of the last 35 days.
# dev   All of it goes with the stack.
#
# CAPABILITY_AUTO_EXPAND is for the transform: without it DeletionPolicy takes no condition. CloudFormation adds or
# removes one index of a table per update; take two updates for two.
#
# Who may do what:
# web     Reads and writes the platform's tables, where no tenant is known yet, and assumes the tenant role.
# tenant  Reads and writes one tenant's items: DynamoDB compares each leading key with the session's TenantId tag.
#         Only the processes below may assume it, only with that tag, and only with a value as long as a tenant id;
#         that it is lower-case hex, which IAM cannot say, the portal checks before it asks.
# seed    What the web role may, and writes tickets in bulk: for `manage.py seed` and `import_archive`, run as a task.
#         BatchWriteItem includes deletions, which IAM cannot leave out; the guard in the code refuses them.
# lifecycle  What the web role may, and reads, writes and deletes all that a tenant has: for `manage.py run_lifecycle`
#         and the commands that move, bring in and purge tenants. The guard binds it to one tenant at a time, and lets
#         it delete a row of the audit trail only while that tenant is purged.
# worker  Reads the stream of the tickets and keeps the aggregates and the search indexes; reads the stream of the
#         outbox and sends what is due to the queues. As functions these also write their logs and tell a queue each
#         what Lambda has given up. Of the tickets' stream, `manage.py rebuild_aggregates` and `rebuild_search` are due
#         then; of the outbox's, nothing: the sweeper finds it.
# delivery  Takes from the queues, and assumes the tenant role for all that it reads and writes of a tenant, but one
#         thing: it pauses an endpoint that answers nothing, which is a row of the audit trail and a mail too. Sends
#         mail, by SES where MailService says so, and notes whom it does not reach.
"""


def template() -> Json:
    """Return the template as data, in the order it is read, whatever region, account and prefix are in force."""
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Transform": "AWS::LanguageExtensions",
        "Description": "Pooldesk: DynamoDB tables, their encryption key and the roles that use them",
        "Parameters": _parameters() | data_events.PARAMETER | _of_rooms("parameters"),
        "Rules": _of_rooms("rules"),
        "Conditions": {
            PRODUCTION: {"Fn::Equals": [{"Ref": "Environment"}, "prod"]},
            OWN_KEY: {"Fn::Equals": [{"Ref": "Encryption"}, "customer-managed"]},
            HAS_SITES: {
                "Fn::Not": [{"Fn::Equals": [{"Fn::Join": ["", {"Ref": SITE_ROLES}]}, lambda_functions.NOT_GIVEN]}]
            },
            **data_events.CONDITIONS,
            **_of_rooms("conditions"),
        },
        "Resources": {
            KEY: table_key([arn(role) for role in (WEB, TENANT, WORKER, DELIVERY, SEED, LIFECYCLE)]),
            **{logical_id(table): _table(table) for table in registry.tables()},
            **stack_roles.roles(),
            **stack_roles.managed_policies(),
            **data_events.resources(),
            **_resources_of_rooms(),
        },
        "Outputs": _outputs(),
    }


def _of_rooms(section: str) -> Json:
    return {name: value for part in parts.parts() for name, value in getattr(part, section).items()}


def _resources_of_rooms() -> Json:
    return {
        name: value for part in parts.parts() for name, value in part.resources(logical_id, stack_roles.BY_NAME).items()
    }


def logical_id(table: Table) -> str:
    """Return what a table is called inside of the template."""
    return f"{table.name.replace('.', '')}Table"


def _parameters() -> Json:
    return {
        "Environment": {
            "Type": "String",
            "Description": "prod keeps, protects and backs up the data; dev lets it go with the stack",
            # Forgetting it must not be the way to lose data.
            "Default": "prod",
            "AllowedValues": ["dev", "prod"],
        },
        "TablePrefix": {
            "Type": "String",
            "Description": "DYNAMODB_TABLE_PREFIX of the portal",
            "Default": "Pooldesk",
            "AllowedPattern": "[A-Za-z0-9][A-Za-z0-9_.-]*",
            "MaxLength": policies.longest_prefix(),
        },
        "Encryption": {
            "Type": "String",
            "Description": "A key of this stack, or the account's aws/dynamodb key, which costs no monthly fee",
            "Default": "customer-managed",
            "AllowedValues": ["customer-managed", "aws-managed"],
        },
        "WebService": {
            "Type": "String",
            "Description": "Where the web process runs",
            "Default": "ecs-tasks.amazonaws.com",
            "AllowedValues": ["ecs-tasks.amazonaws.com", "ec2.amazonaws.com"],
        },
        SITE_ROLES: {
            "Type": "CommaDelimitedList",
            "Description": "The ARNs of the roles that SILOS names: by them the roles of this stack enter its sites",
            "Default": lambda_functions.NOT_GIVEN,
        },
    }


# --- tables and their key ---


def _kept() -> Json:
    keep = {"Fn::If": [PRODUCTION, "Retain", "Delete"]}
    return {"DeletionPolicy": keep, "UpdateReplacePolicy": keep}


def _table(table: Table) -> Json:
    properties: Json = {**table.definition(), "TableName": sub(f"${{TablePrefix}}.{table.name}")}
    if table.stream:
        # CloudFormation enables a stream by naming its view; it has no StreamEnabled.
        properties["StreamSpecification"] = {"StreamViewType": properties["StreamSpecification"]["StreamViewType"]}
    if table.ttl:
        properties["TimeToLiveSpecification"] = {"AttributeName": table.ttl, "Enabled": True}
    in_production = {"Fn::If": [PRODUCTION, True, False]}
    properties |= {
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": in_production},
        "DeletionProtectionEnabled": in_production,
        "SSESpecification": {
            "SSEEnabled": True,
            "SSEType": "KMS",
            "KMSMasterKeyId": {"Fn::If": [OWN_KEY, arn(KEY), {"Ref": "AWS::NoValue"}]},
        },
    }
    return {"Type": "AWS::DynamoDB::Table", **_kept(), "Properties": properties}


def table_key(callers: Any) -> Json:
    """Declare a key for tables. DynamoDB uses it on behalf of the callers, roles by their ARNs; nobody may use it
    directly."""
    account = sub("arn:${AWS::Partition}:iam::${AWS::AccountId}:root")
    statements = [
        {
            # Without it nobody could ever change the key again; AWS makes it the first statement of every key.
            "Sid": "AccountAdministersTheKey",
            "Effect": "Allow",
            "Principal": {"AWS": account},
            "Action": "kms:*",
            "Resource": "*",
        },
        {
            "Sid": "RolesUseItThroughDynamoDB",
            "Effect": "Allow",
            "Principal": {"AWS": callers},
            "Action": [
                "kms:CreateGrant",
                "kms:Decrypt",
                "kms:DescribeKey",
                "kms:Encrypt",
                "kms:GenerateDataKey*",
                "kms:ReEncrypt*",
            ],
            "Resource": "*",
            "Condition": {"StringEquals": {"kms:ViaService": sub("dynamodb.${AWS::Region}.amazonaws.com")}},
        },
    ]
    return {
        "Type": "AWS::KMS::Key",
        "Condition": OWN_KEY,
        **_kept(),
        "Properties": {
            "Description": sub("Encrypts the DynamoDB tables ${TablePrefix}.*"),
            "EnableKeyRotation": True,
            "KeyPolicy": {"Version": "2012-10-17", "Statement": statements},
        },
    }


# --- what others need to know ---


def _outputs() -> Json:
    outputs: Json = {}
    for table in registry.tables():
        outputs[f"{logical_id(table)}Name"] = {"Value": {"Ref": logical_id(table)}}
        if table.stream:
            outputs[f"{logical_id(table)}StreamArn"] = {"Value": {"Fn::GetAtt": [logical_id(table), "StreamArn"]}}
    for role, description in (
        (WEB, "What the web process runs as"),
        (TENANT, "TENANT_ROLE_ARN of the portal"),
        (WORKER, "What `manage.py run_stream` and `run_dispatch` run as"),
        (DELIVERY, "What `manage.py run_delivery` runs as"),
        (SEED, "What `manage.py seed` and `import_archive` run as"),
        (LIFECYCLE, "What the commands run as that move, bring in and purge whole tenants"),
    ):
        outputs[f"{role}Arn"] = {"Description": description, "Value": arn(role)}
    outputs |= _of_rooms("outputs")
    outputs[f"{KEY}Arn"] = {"Condition": OWN_KEY, "Value": arn(KEY)}
    return outputs
