"""What CloudFormation makes of infra/template.yaml, read by the linter's parser: not by the code that wrote it.

The linter is imported by whoever asks for it first: that takes a second, and each worker collects all tests.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings

from portal.deployment.parts import BUCKET
from portal.engines.endpoint import REGION
from portal.management.commands.infra_template import PATH

Json = dict[str, Any]

COMMITTED = Path(settings.BASE_DIR) / PATH
ACCOUNT = "123456789012"
PRODUCTION = {"Environment": "prod", "TablePrefix": "Pooldesk.Prod"}
WITH_FUNCTION = {
    **PRODUCTION,
    "WorkerService": "lambda.amazonaws.com",
    "WorkerCodeBucket": "code",
    "PortalBaseUrl": "https://desk.example.com",
    "EmailUrl": "smtp+tls://user:password@mail.example.com:587",
}
WITH_IMAGE = {
    **PRODUCTION,
    "WorkerService": "lambda.amazonaws.com",
    "Image": f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/pooldesk@sha256:{'0' * 64}",
    "CertificateArn": f"arn:aws:acm:{REGION}:{ACCOUNT}:certificate/0",
    "PortalBaseUrl": "https://desk.example.com",
    "MailService": "ses",
    "MailDomain": "mail.example.com",
    "AlarmTopic": f"arn:aws:sns:{REGION}:{ACCOUNT}:alarms",
}


def read(path: Path) -> Json:
    """A template as dicts, lists and strings."""
    from cfnlint.decode import cfn_yaml

    plain: Json = json.loads(json.dumps(cfn_yaml.load(str(path))))
    return plain


@functools.cache
def _committed() -> str:
    return json.dumps(read(COMMITTED))


def committed() -> Json:
    """The committed file."""
    template: Json = json.loads(_committed())
    return template


class Stack:
    """What CloudFormation makes of the template with these parameters, as far as the template uses its functions."""

    def __init__(self, template: Json, **parameters: str) -> None:
        defaults = {name: p["Default"] for name, p in template["Parameters"].items()}
        pseudo = {"AWS::Region": REGION, "AWS::AccountId": ACCOUNT, "AWS::Partition": "aws", "AWS::NoValue": None}
        pseudo["AWS::StackName"] = "pooldesk"
        self._names = {name: settings.MAIL_BUCKET if name == BUCKET else name for name in template["Resources"]}
        self._values: dict[str, Any] = {**defaults, **pseudo, **parameters}
        for name, parameter in template["Parameters"].items():
            if parameter["Type"] == "CommaDelimitedList":
                self._values[name] = self._values[name].split(",")
        self._declared: Json = template["Conditions"]
        self._conditions: dict[str, bool] = {}
        self.resources = self._present(template["Resources"])
        self.outputs = self._present(template["Outputs"])

    def _present(self, section: Json) -> Json:
        return {k: self._of(v) for k, v in section.items() if "Condition" not in v or self._holds(v["Condition"])}

    def _holds(self, name: str) -> bool:
        if name not in self._conditions:
            self._conditions[name] = self._of(self._declared[name])
        return self._conditions[name]

    def resolved(self, value: Any) -> Any:
        return self._of(value)

    def properties(self, name: str) -> Json:
        return self.resources[name]["Properties"]

    def _of(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._of(v) for v in value]
        if not isinstance(value, dict):
            return value
        name, argument = next(iter(value.items()), ("", None))
        match name:
            case "Ref":
                return self._values.get(argument, argument)
            case "Fn::GetAtt":
                return ".".join(argument)
            case "Fn::Join":
                return argument[0].join(self._of(argument[1]))
            case "Fn::Split":
                return self._of(argument[1]).split(argument[0])
            case "Fn::Sub":
                text, own = (argument, {}) if isinstance(argument, str) else (argument[0], self._of(argument[1]))
                text = re.sub(
                    r"\$\{([\w:.]+)\}",
                    lambda found: {**self._names, **self._values, **own}.get(found[1], found[1]),
                    text,
                )
                return text.replace("${!", "${")
            case "Fn::If":
                return self._of(argument[1 if self._holds(argument[0]) else 2])
            case "Fn::Select":
                return next(iter(self._of(argument[1])[argument[0] :]), "")
            case "Fn::Cidr":
                return [f"{self._of(argument[0])} {number}" for number in range(argument[1])]
            case "Fn::GetAZs":
                return ["zone-a", "zone-b", "zone-c"]
            case "Fn::Equals":
                return self._of(argument[0]) == self._of(argument[1])
            case "Fn::And":
                return all(self._of(one) for one in argument)
            case "Condition" if isinstance(argument, str) and len(value) == 1:
                return self._holds(argument)
            case "Fn::Not":
                return not self._of(argument[0])
        assert not name.startswith("Fn::"), name
        return {k: resolved for k, v in value.items() if (resolved := self._of(v)) is not None}


def statements_in(value: Any) -> Iterator[Json]:
    """Every statement, wherever a policy stands."""
    if isinstance(value, dict):
        if "Effect" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for member in value:
            yield from statements_in(member)
