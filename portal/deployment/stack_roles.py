"""The part of the CloudFormation template that says who may do what: roles, their trust, and their policies.

Sources: AWS, "Pass session tags in AWS STS" (the tenant role's trust), "The confused deputy problem" (the others').
"""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings

from portal.deployment import lambda_functions
from portal.isolation import policies
from portal.schema import registry
from portal.schema.registry import Role

Json = dict[str, Any]

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
        WORKER: _role("The stream worker and the dispatcher", _trusts_service(lambda_functions.SERVICE)),
        DELIVERY: _role("The workers that deliver", _trusts_service(lambda_functions.SERVICE)),
        SEED: _role("The commands that write sample data and imports", _trusts_service("WebService")),
        LIFECYCLE: _role("What moves, brings in and purges tenants", _trusts_web_and_functions()),
    }


def _role(description: str, trust: Json) -> Json:
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "Description": description,
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]},
        },
    }


def _trusts_web_and_functions() -> Json:
    """Trust the service of the web processes, whose machines run commands, and Lambda where workers are functions."""
    web, functions = {"Ref": "WebService"}, {"Ref": lambda_functions.SERVICE}
    return _trusts({"Fn::If": [lambda_functions.ON_LAMBDA, [web, functions], web]})


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
    assume = {
        "Sid": "ActForOneTenant",
        "Effect": "Allow",
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Resource": arn(TENANT),
    }
    found = {
        # Apart from the platform's, which stay word for word what `manage.py iam_policy` prints. A policy of its own
        # also breaks the circle: the tenant role trusts the web role, whose permission names the tenant role.
        "AssumeTenantPolicy": _policy(
            "Act for one tenant, as the tenant role",
            {"Version": "2012-10-17", "Statement": [assume]},
            *ours,
        ),
    }
    sites = {**assume, "Sid": "EnterSites", "Resource": {"Ref": SITE_ROLES}}
    entering = _policy("Enter the sites of silos", {"Version": "2012-10-17", "Statement": [sites]}, *ours)
    found["EnterSitesPolicy"] = {**entering, "Condition": HAS_SITES}
    for role in registry.ROLES:
        _, description, attached = _POLICIES[role]
        for name, document in zip(policy_ids(role), policies.managed(role), strict=True):
            found[name] = _policy(description, _anywhere(document), *attached)
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
    ValueError for an ARN that is no table and no queue of ours, because it would be deployed as it stands.
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
    if not value.startswith(tables):
        raise ValueError(f"{value} is no table or queue of Pooldesk")
    rest = value.removeprefix(tables).replace("${", "${!")
    return sub(f"arn:${{AWS::Partition}}:dynamodb:${{AWS::Region}}:${{AWS::AccountId}}:table/${{TablePrefix}}.{rest}")


def arn(resource: str) -> Json:
    return {"Fn::GetAtt": [resource, "Arn"]}


def sub(text: str) -> Json:
    return {"Fn::Sub": text}
