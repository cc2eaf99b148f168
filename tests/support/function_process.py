"""Run a handler as Lambda runs it, in a process with nothing but what the template gives it, and tell what it asked.

It is started by its path, as it is no part of what the function has. It reads JSON from stdin, {"handler": dotted path,
"events": [...]}, and writes JSON to stdout: the answers, and each request to AWS with the service, the operation, its
parameters and whether it was signed with a tenant's credentials.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

from botocore.client import BaseClient

_real = BaseClient._make_api_call
asked: list[dict[str, Any]] = []


def _noting(self: Any, operation: str, params: dict[str, Any]) -> Any:
    asked.append(
        {
            "service": self.meta.service_model.service_name,
            "operation": operation,
            "params": params,
            "as_tenant": type(self._request_signer._credentials).__name__ == "ContextCredentials",
        }
    )
    return _real(self, operation, params)


def main() -> None:
    given = json.load(sys.stdin)
    # What a function says itself, its sums when a minute is over, is no answer.
    answer_to, sys.stdout = sys.stdout, sys.stderr
    BaseClient._make_api_call = _noting
    module, _, name = given["handler"].rpartition(".")
    handler = getattr(import_module(module), name)
    answers = [handler(event, None) for event in given["events"]]
    json.dump({"answers": answers, "asked": asked}, answer_to, default=str)


if __name__ == "__main__":
    main()
