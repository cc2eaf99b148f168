"""The installation's secrets: made by the stack, read when a process starts, rotated without ending a session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from django.core import signing
from django.test import override_settings
from moto import mock_aws

from portal import aws_session, secret_environment
from portal.hosting import key_rotation
from tests.support.stacks import WITH_IMAGE, Stack, committed

REGION = "eu-central-1"
FIRST = {"SECRET_KEY": "first" * 12, "SECRET_KEY_FALLBACKS": ""}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Amazon's store of secrets, as moto has it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_REGION", REGION)
    with mock_aws():
        aws_session.reset()
        yield boto3.client("secretsmanager", region_name=REGION)
    aws_session.reset()


def kept(store: Any, **members: str) -> str:
    arn: str = store.create_secret(Name=f"pooldesk/{len(members)}", SecretString=json.dumps(members))["ARN"]
    return arn


def in_force(store: Any, arn: str) -> dict[str, str]:
    members: dict[str, str] = json.loads(
        store.get_secret_value(SecretId=arn, VersionStage="AWSCURRENT")["SecretString"]
    )
    return members


def rotate(store: Any, arn: str, number: int) -> None:
    """Call the function as Secrets Manager does, each step twice: it repeats what it has no answer to."""
    token = f"{number:032}"
    for step in ("createSecret", "setSecret", "testSecret", "finishSecret"):
        for _ in range(2):
            key_rotation.handler({"SecretId": arn, "ClientRequestToken": token, "Step": step})


def keys(members: dict[str, str]) -> dict[str, Any]:
    fallbacks = [one for one in members["SECRET_KEY_FALLBACKS"].split(",") if one]
    return {"SECRET_KEY": members["SECRET_KEY"], "SECRET_KEY_FALLBACKS": fallbacks}


# --- reading ---


def test_a_process_has_the_members_of_its_secrets_as_variables_and_what_is_set_stays(store: Any) -> None:
    names = [kept(store, SECRET_KEY="from the store", ENCRYPTION_KEYS="e"), kept(store, CERTIFICATE_KEY="c")]
    environ = {"AWS_SECRETS": ",".join(names), "SECRET_KEY": "set by hand"}
    secret_environment.load(environ)
    assert environ.items() >= {"SECRET_KEY": "set by hand", "ENCRYPTION_KEYS": "e", "CERTIFICATE_KEY": "c"}.items()


def test_a_process_without_secrets_asks_nobody() -> None:
    environ: dict[str, str] = {}
    secret_environment.load(environ)
    assert environ == {}


def test_a_secret_that_is_not_there_keeps_the_process_from_starting(store: Any) -> None:
    with pytest.raises(ClientError, match="ResourceNotFound"):
        secret_environment.load({"AWS_SECRETS": "arn:of:nothing"})


# --- rotation ---


def test_each_process_accepts_what_others_sign_before_and_after_every_rotation(store: Any) -> None:
    arn = kept(store, **FIRST)
    rotate(store, arn, 0)
    versions = [keys(FIRST), keys(in_force(store, arn))]
    for number in range(1, 5):
        rotate(store, arn, number)
        versions.append(keys(in_force(store, arn)))
    for older, newer in pairwise(versions[1:]):
        for signer, reader in ((older, newer), (newer, older)):
            with override_settings(**signer):
                signed = signing.dumps("a session")
            with override_settings(**reader):
                assert signing.loads(signed) == "a session"
    assert len({version["SECRET_KEY"] for version in versions}) == len(versions) - 1


def test_the_first_rotation_changes_no_key_so_that_it_can_follow_the_start_at_once(store: Any) -> None:
    arn = kept(store, **FIRST)
    rotate(store, arn, 1)
    after = in_force(store, arn)
    assert after["SECRET_KEY"] == FIRST["SECRET_KEY"]
    assert len(keys(after)["SECRET_KEY_FALLBACKS"]) == 1


def test_letters_of_former_keys_can_be_answered_for_three_years_and_the_list_ends(store: Any) -> None:
    members = dict(FIRST)
    for _ in range(key_rotation.FORMER + 1):
        members = key_rotation.rotated(members)
    assert FIRST["SECRET_KEY"] in keys(members)["SECRET_KEY_FALLBACKS"]
    for _ in range(20):
        members = key_rotation.rotated(members)
    assert len(keys(members)["SECRET_KEY_FALLBACKS"]) == key_rotation.FORMER + 1


def test_a_key_has_no_comma_and_is_as_long_as_the_check_wants(store: Any) -> None:
    for key in keys(key_rotation.rotated(key_rotation.rotated(FIRST)))["SECRET_KEY_FALLBACKS"]:
        assert len(key) >= 50
        assert "," not in key


def test_a_rotation_restarts_the_web_tasks_once(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    restarted: list[dict[str, Any]] = []

    class Ecs:
        def update_service(self, **how: Any) -> None:
            restarted.append(how)

    real = aws_session.client
    monkeypatch.setattr(aws_session, "client", lambda service, *of: Ecs() if service == "ecs" else real(service, *of))
    monkeypatch.setenv("WEB_CLUSTER", "pooldesk-cluster")
    monkeypatch.setenv("WEB_SERVICE", "pooldesk-web")
    rotate(store, kept(store, **FIRST), 1)
    assert restarted == [{"cluster": "pooldesk-cluster", "service": "pooldesk-web", "forceNewDeployment": True}]


def test_an_unknown_step_is_refused(store: Any) -> None:
    with pytest.raises(ValueError, match="no step guess"):
        key_rotation.handler({"SecretId": kept(store, **FIRST), "ClientRequestToken": "0" * 32, "Step": "guess"})


# --- the stack ---


def test_the_stack_makes_what_the_settings_read_and_only_processes_that_use_it_may_read_it() -> None:
    stack = Stack(committed(), **WITH_IMAGE)
    made = {
        name: {**json.loads(how["SecretStringTemplate"]), how["GenerateStringKey"]: "generated"}
        for name, one in stack.resources.items()
        if one["Type"] == "AWS::SecretsManager::Secret"
        for how in (one["Properties"]["GenerateSecretString"],)
    }
    assert made["SigningKeys"].keys() == FIRST.keys()
    assert made["EncryptionKey"].keys() == {"ENCRYPTION_KEYS"}
    assert made["CertificateKey"].keys() == {"CERTIFICATE_KEY"}
    assert set(stack.properties("ReadSecretsPolicy")["Roles"]) == {
        "WebRole",
        "SeedRole",
        "DeliveryRole",
        "LifecycleRole",
    }


def test_a_certificate_key_has_hex_digits_alone() -> None:
    how = Stack(committed(), **WITH_IMAGE).properties("CertificateKey")["GenerateSecretString"]
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789") - set(how["ExcludeCharacters"])
    assert (allowed, how["PasswordLength"]) == (set("0123456789abcdef"), 64)


def test_only_the_rotation_changes_the_signing_keys_and_it_may_read_no_other_secret() -> None:
    stack = Stack(committed(), **WITH_IMAGE)
    schedule = stack.properties("RotationSchedule")
    assert (schedule["SecretId"], schedule["RotationLambdaARN"]) == ("SigningKeys", "RotationFunction.Arn")
    for statement in stack.properties("RotationPolicy")["PolicyDocument"]["Statement"]:
        if statement["Sid"] == "Rotate":
            assert statement["Resource"] == "SigningKeys"
    changers = [
        name
        for name, one in stack.resources.items()
        if one["Type"] == "AWS::IAM::Policy" and "secretsmanager:Put" in json.dumps(one["Properties"])
    ]
    assert changers == ["RotationPolicy"]
