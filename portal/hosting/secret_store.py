"""Declare the installation's secrets in AWS Secrets Manager, and the function that rotates the signing keys.

A process reads them when it starts (`portal/secret_environment.py`). The keys of stored secrets and of certificates do
not rotate by themselves: what they sealed and signed outlives any number of rotations.

Sources: AWS, "Rotate AWS Secrets Manager secrets by Lambda rotation function", "Permissions for rotation".
"""

from __future__ import annotations

from typing import Any, Final

from portal.deployment import parts
from portal.deployment.parts import CERTIFICATE, ENCRYPTION, SIGNING, FunctionPart, Json, arn, either, resource
from portal.deployment.template import PRODUCTION, sub

ALL: Final = (SIGNING, ENCRYPTION, CERTIFICATE)
ROTATED_DAYS: Final = 90
_ROLE: Final = "RotationRole"
_ROTATION: Final = FunctionPart(
    "Rotation",
    "rotation",
    "Rotates the keys that sign cookies, links and reply addresses",
    "portal.hosting.key_rotation.handler",
    timeout=60,
    environ={
        "WEB_CLUSTER": either(parts.HAS_IMAGE, {"Ref": "Cluster"}, ""),
        "WEB_SERVICE": either(parts.HAS_IMAGE, {"Ref": "Web"}, ""),
    },
)


def _secret(name: str, description: str, generated: Json) -> Json:
    kept = either(PRODUCTION, "Retain", "Delete")
    properties = {"Name": sub(f"${{AWS::StackName}}/{name}"), "Description": description}
    return resource("AWS::SecretsManager::Secret", properties | {"GenerateSecretString": generated}) | {
        "DeletionPolicy": kept,
        "UpdateReplacePolicy": kept,
    }


def _generated(variable: str, length: int, template: str = "{}", **how: Any) -> Json:
    return {
        "SecretStringTemplate": template,
        "GenerateStringKey": variable,
        "PasswordLength": length,
        "ExcludePunctuation": True,
        **how,
    }


def resources(logical_id: Any, roles: dict[str, str]) -> Json:
    digits: Json = {
        "ExcludeUppercase": True,
        "ExcludeCharacters": "ghijklmnopqrstuvwxyz",
        "RequireEachIncludedType": False,
    }
    readers = [roles[name] for name in ("platform", "seed", "delivery", "lifecycle")]
    return {
        SIGNING: _secret(
            "signing-keys",
            "SECRET_KEY of Pooldesk, its former keys and the next one",
            _generated("SECRET_KEY", 64, '{"SECRET_KEY_FALLBACKS": ""}'),
        ),
        ENCRYPTION: _secret(
            "encryption-key", "ENCRYPTION_KEYS of Pooldesk: seals stored secrets", _generated("ENCRYPTION_KEYS", 64)
        ),
        CERTIFICATE: _secret(
            "certificate-key",
            "CERTIFICATE_KEY of Pooldesk: signs certificates of deletion",
            _generated("CERTIFICATE_KEY", 64, **digits),
        ),
        parts.READ_SECRETS: resource(
            "AWS::IAM::Policy",
            {
                "PolicyName": "read-secrets",
                "Roles": [{"Ref": role} for role in readers],
                "PolicyDocument": _allowed(
                    "ReadSecrets",
                    ["secretsmanager:GetSecretValue"],
                    sub(
                        "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${AWS::StackName}/*"
                    ),
                ),
            },
        ),
        **_rotation(),
    }


def _changes() -> Json:
    """Allow what a rotation does: it changes the signing keys, and restarts the web tasks."""
    changing = ["DescribeSecret", "GetSecretValue", "PutSecretValue", "UpdateSecretVersionStage"]
    service = sub(
        "arn:${AWS::Partition}:ecs:${AWS::Region}:${AWS::AccountId}:service/${AWS::StackName}-cluster/${AWS::StackName}-web"
    )
    rotate = _allowed("Rotate", [f"secretsmanager:{name}" for name in changing], {"Ref": SIGNING})
    restart = _allowed("RestartWeb", ["ecs:UpdateService"], service)
    return {**rotate, "Statement": rotate["Statement"] + restart["Statement"]}


def _rotation() -> Json:
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "lambda.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    calling = {
        "FunctionName": {"Ref": _ROTATION.function},
        "Action": "lambda:InvokeFunction",
        "Principal": "secretsmanager.amazonaws.com",
        "SourceAccount": {"Ref": "AWS::AccountId"},
        "SourceArn": {"Ref": SIGNING},
    }
    return {
        _ROLE: resource(
            "AWS::IAM::Role",
            {
                "Description": "The function that rotates the signing keys",
                "AssumeRolePolicyDocument": parts.document(trust),
            },
        ),
        "RotationPolicy": resource(
            "AWS::IAM::Policy",
            {
                "PolicyName": "rotate",
                "Roles": [{"Ref": _ROLE}],
                "PolicyDocument": _changes(),
            },
        ),
        **_ROTATION.resources(_ROLE, after=["RotationPolicy"]),
        "RotationPermission": resource("AWS::Lambda::Permission", calling),
        "RotationSchedule": resource(
            "AWS::SecretsManager::RotationSchedule",
            {
                "SecretId": {"Ref": SIGNING},
                "RotationLambdaARN": arn(_ROTATION.function),
                "RotationRules": {"AutomaticallyAfterDays": ROTATED_DAYS},
            },
        )
        | {"DependsOn": ["RotationPermission"]},
        "RotationErrorsAlarm": parts.alarm(
            "The signing keys could not be rotated",
            parts.metric("AWS/Lambda", "Errors", {"FunctionName": {"Ref": _ROTATION.function}}, "Sum"),
            above=0,
            minutes=1,
            runbook="key-rotation",
            condition=parts.WANTED_OF_FUNCTIONS,
        ),
    }


def _allowed(sid: str, actions: list[str], on: Json) -> Json:
    return parts.document(parts.allow(sid, actions, on))


OUTPUTS: Final[Json] = {
    "Secrets": {
        "Condition": parts.ON_LAMBDA,
        "Description": "AWS_SECRETS of web processes and commands",
        "Value": parts.secrets_named(*ALL),
    }
}
