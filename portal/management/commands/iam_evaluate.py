"""Answer what the guard's evaluator says, so that anyone can hold it against another one."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.isolation import policies


class Command(BaseCommand):
    help = (
        "Read one case a line from standard input, "
        '{"action": "dynamodb:GetItem", "resource": ARN, "keys": [leading keys], "tag": TenantId or null}, '
        "and write Allowed or Denied for each. A policy that uses what the evaluator does not know is refused."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--policy", required=True, type=Path, metavar="FILE", help="an IAM policy as JSON")

    def handle(self, *args: Any, policy: Path, **options: Any) -> None:
        try:
            loaded = policies.Policy(json.loads(policy.read_text(encoding="utf-8")))
        except OSError as error:
            raise CommandError(f"{policy} cannot be read: {error.strerror}.") from error
        except ValueError as error:  # not JSON, not UTF-8, or a PolicyError
            raise CommandError(f"{policy} is refused: {error}.") from error
        for request in cases(sys.stdin):
            self.stdout.write("Allowed" if loaded.allows(request) else "Denied")


def cases(lines: Iterable[str]) -> Iterator[policies.Request]:
    """Yield the requests in JSON lines; empty lines are skipped. Raises CommandError with the number of a bad line."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _case(json.loads(line))
        except (ValueError, TypeError) as error:
            raise CommandError(f"Line {number} of the cases: {error}.") from error


def _case(raw: Any) -> policies.Request:
    if not isinstance(raw, dict) or not isinstance(raw.get("action"), str) or not isinstance(raw.get("resource"), str):
        raise TypeError("a case is an object with the texts action and resource")
    leading, tag = raw.get("keys") or [], raw.get("tag")
    if not isinstance(leading, list) or not all(isinstance(k, str) for k in leading):
        raise TypeError("keys is a list of texts")
    if tag is not None and not isinstance(tag, str):
        raise TypeError("tag is a text or null")
    return policies.Request(raw["action"], raw["resource"], tuple(leading), tag)
