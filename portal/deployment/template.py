"""Make the CloudFormation template from the declarations that the code itself runs on.

The packages declare their tables, the rights of each role and resources of their own; this module only says how AWS is
to hold them: who may assume which role, with which key the tables are encrypted, what is kept when a stack goes.
`infra/template.yaml` is its output, committed so that it can be read, linted and deployed without Python.

Sources: AWS, "Pass session tags in AWS STS" (the tenant role's trust), "DynamoDB encryption at rest usage notes" (the
key's policy), "The confused deputy problem" (the trust of the other roles), "Intrinsic function references in
DeletionPolicy" (why the template needs a transform).
"""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings

from portal.deployment import data_events, object_bucket, parts
from portal.deployment.parts import allow, arn, document, text_parameter
from portal.isolation import policies
from portal.schema import registry
from portal.schema.registry import Role, Table

Json = dict[str, Any]

PRODUCTION: Final = "IsProduction"
OWN_KEY: Final = "HasOwnKey"
KEY: Final = "TableKey"

HEADER: Final = """\
# The tables and roles of Pooldesk for an AWS account. Generated: change the stored.py or deployment.py of a package, or
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
# With Image, an image of this project in Amazon ECR, the stack is the whole service: load balancer, web tasks, secrets,
# and functions of the same image. `make deploy` sets its parameters and shows the changes first; see docs/deploy.md.
#
# The portal elsewhere needs DYNAMODB_TABLE_PREFIX=<TablePrefix>, TENANT_ROLE_ARN=<output TenantRoleArn>, AWS_REGION and
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
        "Description": "Pooldesk: tables, queues and roles; with an image also the web service and its functions",
        "Parameters": _parameters() | data_events.PARAMETER | object_bucket.PARAMETER | _of_parts("parameters"),
        "Rules": _of_parts("rules"),
        "Conditions": {
            PRODUCTION: {"Fn::Equals": [{"Ref": "Environment"}, "prod"]},
            OWN_KEY: {"Fn::Equals": [{"Ref": "Encryption"}, "customer-managed"]},
            HAS_SITES: {"Fn::Not": [{"Fn::Equals": [{"Fn::Join": ["", {"Ref": SITE_ROLES}]}, parts.NOT_GIVEN]}]},
            **data_events.CONDITIONS,
            **_of_parts("conditions"),
        },
        "Resources": {
            KEY: table_key([arn(role) for role in (WEB, TENANT, WORKER, DELIVERY, SEED, LIFECYCLE)]),
            **{logical_id(table): _table(table) for table in registry.tables()},
            **roles(),
            **managed_policies(),
            **data_events.resources(),
            **object_bucket.resources(),
            **{k: v for part in parts.parts() for k, v in part.resources(logical_id, BY_NAME).items()},
        },
        "Outputs": _outputs(),
    }


def _of_parts(section: str) -> Json:
    return {name: value for part in parts.parts() for name, value in getattr(part, section).items()}


def logical_id(table: Table) -> str:
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
        "TablePrefix": text_parameter(
            "DYNAMODB_TABLE_PREFIX of the portal",
            "Pooldesk",
            AllowedPattern="[A-Za-z0-9][A-Za-z0-9_.-]*",
            MaxLength=policies.longest_prefix(),
        ),
        "Encryption": text_parameter(
            "A key of this stack, or the account's aws/dynamodb key, which costs no monthly fee",
            "customer-managed",
            AllowedValues=["customer-managed", "aws-managed"],
        ),
        "WebService": text_parameter(
            "Where the web process runs",
            "ecs-tasks.amazonaws.com",
            AllowedValues=["ecs-tasks.amazonaws.com", "ec2.amazonaws.com"],
        ),
        SITE_ROLES: {
            "Type": "CommaDelimitedList",
            "Description": "The ARNs of the roles that SILOS names: by them the roles of this stack enter its sites",
            "Default": parts.NOT_GIVEN,
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
            "KeyPolicy": document(*statements),
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
    outputs |= _of_parts("outputs") | object_bucket.OUTPUTS
    outputs[f"{KEY}Arn"] = {"Condition": OWN_KEY, "Value": arn(KEY)}
    return outputs


# --- roles, their trust and their policies ---

WEB, TENANT, WORKER, DELIVERY, SEED = "WebRole", "TenantRole", "WorkerRole", "DeliveryRole", "SeedRole"
LIFECYCLE: Final = "LifecycleRole"
SITE_ROLES, HAS_SITES = "SiteRoles", "HasSites"
BY_NAME: Final = {
    "platform": WEB,
    "tenant": TENANT,
    "worker": WORKER,
    "delivery": DELIVERY,
    "seed": SEED,
    "lifecycle": LIFECYCLE,
}
# The policies of a role, and whom they are attached to.
_POLICIES: Final[dict[Role, tuple[str, str, tuple[str, ...]]]] = {
    "platform": ("PlatformPolicy", "What is read and written before a tenant is known", (WEB, SEED, LIFECYCLE)),
    "tenant": ("TenantPolicy", "One tenant's items", (TENANT,)),
    "worker": ("WorkerPolicy", "Both streams, the aggregates, and what is sent to the queues", (WORKER,)),
    "delivery": ("DeliveryPolicy", "What the queues bring, and the pause of an endpoint", (DELIVERY,)),
    "seed": ("SeedPolicy", "Tickets in bulk", (SEED,)),
    "lifecycle": ("LifecyclePolicy", "All that a tenant has, one tenant at a time", (LIFECYCLE,)),
}


def roles() -> Json:
    return {
        WEB: _role("The portal's web process", _trusts_service("WebService")),
        TENANT: _role("One tenant at a time, named by the session tag TenantId", _trusts_ours_for_one_tenant()),
        WORKER: _role("The stream worker and the dispatcher", _trusts_service(parts.SERVICE)),
        DELIVERY: _role("The workers that deliver", _trusts_service(parts.SERVICE)),
        SEED: _role("The commands that write sample data and imports", _trusts_service("WebService")),
        LIFECYCLE: _role("What moves, brings in and purges tenants", _trusts_web_and_functions()),
    }


def _role(description: str, trust: Json) -> Json:
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "Description": description,
            "AssumeRolePolicyDocument": document(trust),
        },
    }


def _trusts_web_and_functions() -> Json:
    """Trust the service of the web processes, whose machines run commands, and Lambda where workers are functions."""
    web, functions = {"Ref": "WebService"}, {"Ref": parts.SERVICE}
    return _trusts({"Fn::If": [parts.ON_LAMBDA, [web, functions], web]})


def _trusts_service(parameter: str) -> Json:
    return _trusts({"Ref": parameter})


def _trusts(service: Json) -> Json:
    return {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": "sts:AssumeRole",
        # Not in another account's name. EC2 does not say in whose name it asks.
        "Condition": {"StringEqualsIfExists": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
    }


def _trusts_ours_for_one_tenant() -> Json:
    return {
        "Effect": "Allow",
        "Principal": {"AWS": [arn(WEB), arn(SEED), arn(WORKER), arn(DELIVERY), arn(LIFECYCLE)]},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {
            # IAM knows no character classes: 32 characters is all of "32 lower-case hex digits" that it can express.
            "StringLike": {"aws:RequestTag/TenantId": "?" * 32},
            "Null": {"aws:RequestTag/TenantId": "false"},
            "ForAllValues:StringEquals": {"aws:TagKeys": ["TenantId"]},
        },
    }


def managed_policies() -> Json:
    ours = (WEB, SEED, WORKER, DELIVERY, LIFECYCLE)
    assume = allow("ActForOneTenant", ["sts:AssumeRole", "sts:TagSession"], arn(TENANT))
    found = {
        # Apart from the platform's, which stay word for word what `manage.py iam_policy` prints. A policy of its own
        # also breaks the circle: the tenant role trusts the web role, whose permission names the tenant role.
        "AssumeTenantPolicy": _policy("Act for one tenant, as the tenant role", document(assume), *ours),
    }
    sites = {**assume, "Sid": "EnterSites", "Resource": {"Ref": SITE_ROLES}}
    entering = _policy("Enter the sites of silos", document(sites), *ours)
    found["EnterSitesPolicy"] = {**entering, "Condition": HAS_SITES}
    for role in registry.ROLES:
        _, description, attached = _POLICIES[role]
        for name, policy in zip(policy_ids(role), policies.managed(role), strict=True):
            found[name] = _policy(description, _anywhere(policy), *attached)
    return found


def policy_ids(role: Role) -> list[str]:
    """Return what the managed policies of a role are called inside of the template."""
    count = len(policies.managed(role))
    return [_POLICIES[role][0] + (str(number) if number > 1 else "") for number in range(1, count + 1)]


def _policy(description: str, document: Json, *roles: str) -> Json:
    attached = [{"Ref": role} for role in roles]
    return {
        "Type": "AWS::IAM::ManagedPolicy",
        "Properties": {"Description": description, "Roles": attached, "PolicyDocument": document},
    }


def _anywhere(value: Any) -> Any:
    """Return a policy with the region, account and prefix of these settings replaced by those of the stack.

    Only ARNs are substituted: elsewhere `${aws:PrincipalTag/TenantId}` stays as it is, for IAM to fill in. Raises
    ValueError for an ARN that is no table, no queue and no bucket of ours, because it would be deployed as it stands.
    """
    if isinstance(value, dict):
        return {name: _anywhere(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_anywhere(member) for member in value]
    if not isinstance(value, str) or not value.startswith("arn:"):
        return value
    tables, queues = policies.table_arn(f"{settings.DYNAMODB_TABLE_PREFIX}."), policies.queue_arn("").rstrip("*")
    if value.startswith(queues):
        # A list: the template knows the prefix with its dots alone.
        dashed = {"Fn::Join": ["-", {"Fn::Split": [".", {"Ref": "TablePrefix"}]}]}
        text = (
            f"arn:${{AWS::Partition}}:sqs:${{AWS::Region}}:${{AWS::AccountId}}:${{Dashed}}-{value.removeprefix(queues)}"
        )
        return {"Fn::Sub": [text, {"Dashed": dashed}]}
    if value.startswith(policies.object_arn()):
        rest = value.removeprefix(policies.object_arn()).replace("${", "${!")
        return sub(f"arn:${{AWS::Partition}}:s3:::${{{parts.BUCKET}}}{rest}")
    if not value.startswith(tables):
        raise ValueError(f"{value} is no table, queue or object of Pooldesk")
    rest = value.removeprefix(tables).replace("${", "${!")
    return sub(f"arn:${{AWS::Partition}}:dynamodb:${{AWS::Region}}:${{AWS::AccountId}}:table/${{TablePrefix}}.{rest}")


def sub(text: str) -> Json:
    return {"Fn::Sub": text}
