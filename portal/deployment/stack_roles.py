"""The part of the CloudFormation template that says who may do what: roles, their trust, and their policies.

Sources: AWS, "Pass session tags in AWS STS" (the tenant role's trust), "The confused deputy problem" (the others').
"""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings

from portal.isolation import policies

Json = dict[str, Any]

WEB, TENANT, WORKER, SEED = "WebRole", "TenantRole", "WorkerRole", "SeedRole"
BY_NAME: Final = {"platform": WEB, "tenant": TENANT, "worker": WORKER, "seed": SEED}


def roles() -> Json:
    return {
        WEB: _role("The portal's web process", _trusts_service("WebService")),
        TENANT: _role("One tenant at a time, named by the session tag TenantId", _trusts_web_for_one_tenant()),
        WORKER: _role("The worker that keeps the aggregates", _trusts_service("WorkerService")),
        SEED: _role("The commands that write sample data and imports", _trusts_service("WebService")),
    }


def _role(description: str, trust: Json) -> Json:
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "Description": description,
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]},
        },
    }


def _trusts_service(parameter: str) -> Json:
    return {
        "Effect": "Allow",
        "Principal": {"Service": {"Ref": parameter}},
        "Action": "sts:AssumeRole",
        # Not in another account's name. EC2 does not say in whose name it asks.
        "Condition": {"StringEqualsIfExists": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
    }


def _trusts_web_for_one_tenant() -> Json:
    return {
        "Effect": "Allow",
        "Principal": {"AWS": [arn(WEB), arn(SEED)]},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {
            # IAM knows no character classes: 32 characters is all of "32 lower-case hex digits" that it can express.
            "StringLike": {"aws:RequestTag/TenantId": "?" * 32},
            "Null": {"aws:RequestTag/TenantId": "false"},
            "ForAllValues:StringEquals": {"aws:TagKeys": ["TenantId"]},
        },
    }


def managed_policies() -> Json:
    assume = {
        "Sid": "ActForOneTenant",
        "Effect": "Allow",
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Resource": arn(TENANT),
    }
    return {
        "PlatformPolicy": _policy(
            "What is read and written before a tenant is known", _document("platform"), WEB, SEED
        ),
        # Apart from the platform's, which stays word for word what `manage.py iam_policy` prints. A policy of its own
        # also breaks the circle: the tenant role trusts the web role, whose permission names the tenant role.
        "AssumeTenantPolicy": _policy(
            "Act for one tenant, as the tenant role", {"Version": "2012-10-17", "Statement": [assume]}, WEB, SEED
        ),
        "TenantPolicy": _policy("One tenant's items", _document("tenant"), TENANT),
        "WorkerPolicy": _policy("The tickets' stream and the aggregates", _document("worker"), WORKER),
        "SeedPolicy": _policy("Tickets in bulk", _document("seed"), SEED),
    }


def _policy(description: str, document: Json, *roles: str) -> Json:
    attached = [{"Ref": role} for role in roles]
    return {
        "Type": "AWS::IAM::ManagedPolicy",
        "Properties": {"Description": description, "Roles": attached, "PolicyDocument": document},
    }


def _document(role: str) -> Json:
    document: Json = _anywhere(policies.document(role))
    return document


def _anywhere(value: Any) -> Any:
    """Return a policy with the region, account and prefix of these settings replaced by those of the stack.

    Only ARNs are substituted: elsewhere `${aws:PrincipalTag/TenantId}` stays as it is, for IAM to fill in. Raises
    ValueError for an ARN that is no table of ours, because it would be deployed as it stands.
    """
    if isinstance(value, dict):
        return {name: _anywhere(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_anywhere(member) for member in value]
    if not isinstance(value, str) or not value.startswith("arn:"):
        return value
    here = policies.table_arn(f"{settings.DYNAMODB_TABLE_PREFIX}.")
    if not value.startswith(here):
        raise ValueError(f"{value} is no table of Pooldesk")
    rest = value.removeprefix(here).replace("${", "${!")
    return sub(f"arn:${{AWS::Partition}}:dynamodb:${{AWS::Region}}:${{AWS::AccountId}}:table/${{TablePrefix}}.{rest}")


def arn(resource: str) -> Json:
    return {"Fn::GetAtt": [resource, "Arn"]}


def sub(text: str) -> Json:
    return {"Fn::Sub": text}
