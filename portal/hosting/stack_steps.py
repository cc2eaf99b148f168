"""Carry out what an operator does with a whole stack: deploy, upgrade, make the first operator, run a command, remove.

Each step says what it found before it changes anything. Errors that AWS would report after ten minutes are found at
once: an image that is not there, a certificate of another name, a region without the stack.

CloudFormation adds or removes one index of a table in each update. New indexes are built while the former version runs,
and former ones are removed when it does not run any more, so no version misses an index that it reads. The tables
themselves say which indexes they have, so an upgrade that stopped half-way continues.
"""

from __future__ import annotations

import copy
import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from portal.deployment import template as infra
from portal.deployment.parts import NOT_GIVEN, Json
from portal.errors import Conflict, Invalid
from portal.hosting import prices
from portal.hosting.stack_control import StackControl, summary

_INDEXES: Final = "GlobalSecondaryIndexes"
_OF_AN_INDEX: Final = ("IndexName", "KeySchema", "Projection")


@dataclass
class TableIndexes:
    """The indexes of one table, by name: those that the template wants, and those that the table has."""

    logical_id: str
    wanted: dict[str, Json]
    had: dict[str, Json]
    attributes: dict[str, Json] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        return [name for name in self.wanted if name not in self.had]

    @property
    def former(self) -> list[str]:
        return [name for name in self.had if name not in self.wanted]


@dataclass(frozen=True)
class StackUpdate:
    """One update of the stack."""

    title: str
    template: Json
    new_version: bool


def indexes_of(template: Json, described: Callable[[str], Json | None], prefix: str) -> list[TableIndexes]:
    """Compare the template's tables with those that are there. `described` gives DynamoDB's description of a table by
    its full name, None for a new one."""
    found = []
    for name, one in template["Resources"].items():
        if one["Type"] != "AWS::DynamoDB::Table":
            continue
        full_name = one["Properties"]["TableName"]["Fn::Sub"].replace("${TablePrefix}", prefix)
        table = described(full_name)
        if table is None:
            continue
        wanted = {index["IndexName"]: index for index in one["Properties"].get(_INDEXES, [])}
        had = {index["IndexName"]: {key: index[key] for key in _OF_AN_INDEX} for index in table.get(_INDEXES, [])}
        attributes = {one["AttributeName"]: one for one in table["AttributeDefinitions"]}
        found.append(TableIndexes(name, wanted, had, attributes))
    return found


def stages(template: Json, tables: list[TableIndexes]) -> list[StackUpdate]:
    """Return the updates by which a stack comes to this template: one, if no index has changed."""
    adding, removing = (max((len(of) for of in kind), default=0) for kind in _differences(tables))
    found = [
        StackUpdate(f"Build new indexes ({number} of {adding})", _with(template, tables, number, 0), new_version=False)
        for number in range(1, adding + 1)
    ]
    found.append(StackUpdate("Start this version", _with(template, tables, adding, 0), new_version=True))
    found += [
        StackUpdate(
            f"Remove former indexes ({number} of {removing})",
            _with(template, tables, adding, number),
            new_version=True,
        )
        for number in range(1, removing + 1)
    ]
    return found


def _differences(tables: list[TableIndexes]) -> tuple[list[list[str]], list[list[str]]]:
    return [table.missing for table in tables], [table.former for table in tables]


def _with(template: Json, tables: list[TableIndexes], added: int, removed: int) -> Json:
    """Return the template with this many of the missing indexes of each table, and without this many former ones."""
    made = copy.deepcopy(template)
    for table in tables:
        if not (table.missing or table.former):
            continue
        properties = made["Resources"][table.logical_id]["Properties"]
        absent = set(table.missing[added:])
        former = [table.had[name] for name in table.former[removed:]]
        indexes = [index for name, index in table.wanted.items() if name not in absent] + former
        defined = table.attributes | {one["AttributeName"]: one for one in properties["AttributeDefinitions"]}
        used = _keys(properties["KeySchema"]) | {key for index in indexes for key in _keys(index["KeySchema"])}
        properties[_INDEXES] = indexes
        properties["AttributeDefinitions"] = [one for name, one in sorted(defined.items()) if name in used]
        if not indexes:
            del properties[_INDEXES]
    return made


def _keys(schema: list[dict[str, Any]]) -> set[str]:
    return {one["AttributeName"] for one in schema}


# The options of the command by the parameter that they set.
PARAMETERS: Final = {
    "image": "Image",
    "certificate": "CertificateArn",
    "address": "PortalBaseUrl",
    "sender": "DefaultFromEmail",
    "mail_domain": "MailDomain",
    "email_url": "EmailUrl",
    "size": "Size",
    "processor": "Processor",
    "alarm_topic": "AlarmTopic",
}
_FIRST: Final = ("image", "certificate", "address", "sender")  # what a stack cannot be created without
_LINES: Final = 200  # of the log of a command


def deploy(control: StackControl, options: dict[str, Any], *, only_upgrade: bool = False) -> None:
    """Create or update a stack. Raises Invalid for options, and Conflict where AWS or the operator refuses."""
    account = control.account()
    there = control.found()
    if only_upgrade and there is None:
        raise Invalid(f"There is no stack {control.name} in {control.region} of this account: `make deploy` makes one.")
    wanted = _wanted(control, account, options, new=there is None)
    made = infra.template()
    updates = _stages(control, made) if there else [StackUpdate("Create the stack", made, new_version=True)]
    for number, stage in enumerate(updates):
        parameters = wanted if stage.new_version else {k: v for k, v in wanted.items() if k != "Image"}
        _update(control, account, stage, parameters, asks=number == 0, total=len(updates))
    protect(control)
    for line in _next_steps(control, new=there is None):
        control.console.say(line)


def _stages(control: StackControl, template: dict[str, Any]) -> list[StackUpdate]:
    """Return the updates that bring the stack to this template, and say why there are several."""
    prefix = control.parameters().get("TablePrefix", "")
    tables = indexes_of(template, control.described_table, prefix)
    for table in tables:
        for sign, names in (("+", table.missing), ("-", table.former)):
            for name in names:
                control.console.say(f"Index {sign} {name} of {table.logical_id}")
    return stages(template, tables)


def _update(
    control: StackControl, account: str, stage: StackUpdate, wanted: dict[str, str], *, asks: bool, total: int
) -> None:
    """Carry out one update of a deployment. The first one asks for all."""
    console = control.console
    url = control.uploaded(json.dumps(stage.template), account)
    changes = control.change_set(url, wanted, set(stage.template["Parameters"]))
    if total > 1:
        console.say(f"{stage.title}:")
    if not changes:
        console.say("Nothing to change: the stack is as this version and these parameters want it.")
        return
    for line in summary(changes):
        console.say(line)
    lost = [change.name for change in changes if change.loses_data]
    if lost:
        control.discard()
        raise Conflict(f"These changes would remove or replace what holds data: {', '.join(lost)}. They were not made.")
    if asks:
        for line in _bill(control.parameters() | wanted, stage.template):
            console.say(line)
        more = f" {total} updates follow one another, each new index after it is built." if total > 1 else ""
        if not console.agrees(f"Carry this out in account {account}, {control.region}?{more}", "yes"):
            control.discard()
            raise Conflict("Nothing was changed.")
    control.carry_out()


def _wanted(control: StackControl, account: str, options: dict[str, Any], *, new: bool) -> dict[str, str]:
    """Return the parameters that this deployment sets, after looking at what they name."""
    wanted = {PARAMETERS[name]: options[name] for name in PARAMETERS if options.get(name)}
    for pair in options.get("set") or []:
        name, separator, value = pair.partition("=")
        if not separator or name not in infra.template()["Parameters"]:
            raise Invalid(f"{pair!r} is not NAME=VALUE of a parameter of infra/template.yaml.")
        wanted[name] = value
    if new:
        missing = [name.upper() for name in _FIRST if not options.get(name)]
        if missing:
            raise Invalid(f"A new stack needs {', '.join(missing)}; docs/deploy.md says where they come from.")
        wanted = {
            "TablePrefix": control.name,
            "WorkerService": "lambda.amazonaws.com",
            "MailService": "smtp" if options.get("email_url") else "ses",
            **wanted,
        }
    if address := wanted.get("PortalBaseUrl"):
        host = urlsplit(address)
        if host.scheme != "https" or not host.hostname or host.path or host.query:
            raise Invalid(f"ADDRESS is https:// and a host, such as https://desk.example.com, and not {address!r}.")
        wanted["PortalOrigin"] = address
    if image := wanted.get("Image"):
        wanted["Image"] = _pinned(control, account, image)
    if certificate := wanted.get("CertificateArn"):
        named = wanted.get("PortalBaseUrl") or control.parameters().get("PortalBaseUrl", "")
        _look_at_certificate(control, certificate, urlsplit(named).hostname or "")
    if wanted.get("MailDomain") and new:
        wanted.setdefault("MailIdentity", _identity(control, wanted["MailDomain"]))
    return wanted


def _pinned(control: StackControl, account: str, image: str) -> str:
    """Return the image by its digest, so that a tag that moves changes nothing by itself."""
    registry, _, rest = image.partition("/")
    own = f"{account}.dkr.ecr.{control.region}.amazonaws.com"
    if registry != own or not rest:
        raise Invalid(f"IMAGE is in the account's own registry, {own}/<repository>:<tag>, and not {image!r}.")
    repository, _, digest = rest.partition("@")
    repository, _, tag = repository.partition(":")
    wanted = {"imageDigest": digest} if digest else {"imageTag": tag or "latest"}
    try:
        answer = control.client("ecr").describe_images(repositoryName=repository, imageIds=[wanted])
        found = answer["imageDetails"][0]["imageDigest"]
    except (ClientError, IndexError) as error:
        raise Invalid(
            f"{image} is not there. Build and push it:\n"
            f"  make image\n"
            f"  aws ecr create-repository --repository-name {repository} --region {control.region}\n"
            f"  aws ecr get-login-password --region {control.region} |"
            f" docker login --username AWS --password-stdin {own}\n"
            f"  docker tag pooldesk {own}/{repository}:{tag or 'latest'}\n"
            f"  docker push {own}/{repository}:{tag or 'latest'}"
        ) from error
    return f"{own}/{repository}@{found}"


def _look_at_certificate(control: StackControl, arn: str, host: str) -> None:
    parts = arn.split(":")
    if len(parts) < 6 or parts[2] != "acm" or parts[3] != control.region:
        raise Invalid(f"CERTIFICATE is the ARN of a certificate in AWS Certificate Manager of {control.region}.")
    try:
        found = control.client("acm").describe_certificate(CertificateArn=arn)["Certificate"]
    except ClientError as error:
        raise Invalid(f"The certificate is not there: {error.response['Error']['Message']}") from error
    if found["Status"] != "ISSUED":
        raise Invalid(f"The certificate is not issued yet ({found['Status']}): make the DNS entry that it asks for.")
    names = {found["DomainName"], *found.get("SubjectAlternativeNames", [])}
    if host and host not in names and f"*.{host.partition('.')[2]}" not in names:
        raise Invalid(f"The certificate is for {', '.join(sorted(names))}, and not for {host}.")


def _identity(control: StackControl, domain: str) -> str:
    try:
        control.client("sesv2").get_email_identity(EmailIdentity=domain)
    except ClientError:
        return "stack"
    return "there"


def protect(control: StackControl) -> None:
    """Let nobody delete a production stack by one call."""
    if control.parameters().get("Environment", "prod") == "prod":
        control.client("cloudformation").update_termination_protection(
            StackName=control.name, EnableTerminationProtection=True
        )


def _bill(parameters: dict[str, str], template: dict[str, Any]) -> Iterator[str]:
    given = {name: parameters.get(name, of.get("Default", "")) for name, of in template["Parameters"].items()}
    if given["Image"] == NOT_GIVEN:
        return
    lines = prices.month(
        given["Size"],
        given["Processor"],
        alarms=0 if given["AlarmTopic"] == NOT_GIVEN else prices.alarms_of(template),
        own_network=given["Vpc"] == template["Parameters"]["Vpc"]["Default"],
    )
    noted = f"prices of {prices.NOTED:%d %B %Y}, us-east-1"
    yield f"A month costs about {prices.total(lines):.0f} dollars before traffic ({noted}):"
    yield from (f"  {line.dollars:8.2f} {line.what}: {line.count}" for line in lines)


def _next_steps(control: StackControl, *, new: bool) -> Iterator[str]:
    outputs, parameters = control.outputs(), control.parameters()
    if "BalancerName" not in outputs:
        return
    address = parameters["PortalBaseUrl"]
    yield f"The portal: {address}"
    yield f"DNS entry: {urlsplit(address).hostname} CNAME {outputs['BalancerName']}"
    domain = parameters.get("MailDomain", NOT_GIVEN)
    if domain != NOT_GIVEN:
        yield f"DNS entry: {domain} MX 10 inbound-smtp.{control.region}.amazonaws.com"
        for number in (1, 2, 3):
            if named := outputs.get(f"Dkim{number}"):
                name, _, value = named.partition(" ")
                yield f"DNS entry: {name} CNAME {value}"
        yield from _receiving(control, outputs.get("LettersRuleSetName", ""))
    if new:
        yield f'The first operator: make operator STACK={control.name} EMAIL=you@example.com NAME="Your Name"'


def _receiving(control: StackControl, rules: str) -> Iterator[str]:
    """Make the stack's rule set the active one if none is. There is one in an account and region."""
    ses = control.client("ses")
    active = (ses.describe_active_receipt_rule_set().get("Metadata") or {}).get("Name")
    if active is None and rules:
        ses.set_active_receipt_rule_set(RuleSetName=rules)
        yield f"Letters come in by the rule set {rules}, which is now the active one."
    elif active != rules:
        yield (
            f"Another rule set, {active}, is active for letters that come in. Copy its rules into {rules}, then: "
            f"aws ses set-active-receipt-rule-set --rule-set-name {rules} --region {control.region}"
        )


# --- commands in a task ---


def run(
    control: StackControl, arguments: list[str], *, role: str = "Web", environment: dict[str, str] | None = None
) -> int:
    """Run a command of manage.py in a task of the web service, say its log, and return its exit status."""
    outputs = control.outputs()
    if "WebTaskArn" not in outputs:
        raise Invalid(f"{control.name} has no image, so there is nothing to run a command in.")
    ecs, cluster = control.client("ecs"), outputs["ClusterName"]
    variables = [{"name": name, "value": value} for name, value in (environment or {}).items()]
    command = ["python3", "manage.py", *arguments]
    started = ecs.run_task(
        cluster=cluster,
        taskDefinition=outputs["WebTaskArn"],
        launchType="FARGATE",
        networkConfiguration={
            "awsvpcConfiguration": {
                "subnets": outputs["TaskSubnetIds"].split(","),
                "securityGroups": [outputs["TaskGroupId"]],
                "assignPublicIp": outputs["TasksArePublic"],
            }
        },
        overrides={
            "taskRoleArn": outputs[f"{role}RoleArn"],
            "containerOverrides": [{"name": "web", "command": command, "environment": variables}],
        },
    )
    if started["failures"]:
        raise Conflict(f"No task was started: {started['failures'][0].get('reason')}")
    task = started["tasks"][0]["taskArn"]
    control.console.say(f"Running `manage.py {' '.join(arguments)}`; a task takes half a minute to start.")
    while True:
        (described,) = ecs.describe_tasks(cluster=cluster, tasks=[task])["tasks"]
        if described["lastStatus"] == "STOPPED":
            break
        control.sleep(3.0)
    for line in _log(control, task.rpartition("/")[2]):
        control.console.say(line)
    status = described["containers"][0].get("exitCode")
    if status is None:
        raise Conflict(f"The task did not run: {described.get('stoppedReason', 'no reason is known')}")
    return int(status)


def _log(control: StackControl, task: str) -> Iterator[str]:
    try:
        events = control.client("logs").get_log_events(
            logGroupName=f"/ecs/{control.name}-web", logStreamName=f"web/web/{task}", startFromHead=False, limit=_LINES
        )["events"]
    except ClientError:
        return  # nothing was said
    yield from (event["message"] for event in events)


def operator(control: StackControl, email: str, name: str, password: str) -> int:
    """Make the first operator. The password goes by a secret that is deleted afterwards: no record of AWS has it."""
    store = control.client("secretsmanager")
    # Its name begins as those that the task's role may read.
    secret = store.create_secret(
        Name=f"{control.name}/operator-{secrets.token_hex(6)}",
        SecretString=json.dumps({"OPERATOR_PASSWORD": password}),
    )["ARN"]
    try:
        known = control.outputs().get("Secrets", "")
        return run(
            control,
            ["create_operator", email, "--name", name, "--password-env", "OPERATOR_PASSWORD"],
            environment={"AWS_SECRETS": f"{known},{secret}"},
        )
    finally:
        store.delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)


# --- the end ---


def teardown(control: StackControl, *, delete_data: bool) -> None:
    """Remove a stack. Its data stays unless the operator says twice that it goes."""
    control.account()
    parameters = control.parameters()
    if not parameters and control.found() is None:
        raise Invalid(f"There is no stack {control.name} in {control.region} of this account.")
    kept = parameters.get("Environment", "prod") == "prod"
    if not kept and not delete_data:
        raise Invalid(f"{control.name} is a development stack: its data goes with it. Say so with DELETE_DATA=1.")
    data, prefix = control.data(), parameters.get("TablePrefix", control.name)
    count = ", ".join(f"{len(ids)} {kind.rpartition('::')[2]}" for kind, ids in data.items() if ids)
    console = control.console
    console.say(f"Web service, functions, queues and roles of {control.name} go. Data: {count or 'none'}.")
    if not console.agrees(
        f"Type the stack's name to remove it{'' if delete_data else ', and keep the data'}:", control.name
    ):
        raise Conflict("Nothing was removed.")
    sentence = f"delete all data of {control.name}"
    if delete_data and not console.agrees(f"No backup is left, and no desk comes back. Type “{sentence}”:", sentence):
        raise Conflict("Nothing was removed.")
    control.remove()
    if not delete_data:
        console.say("These stay, and cost what they store:")
        for kind, ids in data.items():
            for one in ids:
                console.say(f"  {kind} {one}")
    elif kept:
        control.delete_data(data, prefix)
    console.say(f"{control.name} is removed.")
