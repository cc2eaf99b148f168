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

from portal.dynamo.item_protocol import ItemCalls

asked: list[dict[str, Any]] = []


def _note_calls(kind: Any) -> None:
    """Note what clients of this class ask; what ItemCalls hands on to botocore is noted once."""
    real = kind._make_api_call

    def noting(self: Any, operation: str, params: dict[str, Any]) -> Any:
        if kind is ItemCalls or not isinstance(self, ItemCalls):
            signer = type(self._request_signer._credentials).__name__
            service = self.meta.service_model.service_name
            call = {"service": service, "operation": operation, "params": params}
            asked.append(call | {"as_tenant": signer == "ContextCredentials"})
        return real(self, operation, params)

    kind._make_api_call = noting


def main() -> None:
    given = json.load(sys.stdin)
    # What a function says itself, its sums when a minute is over, is no answer.
    answer_to, sys.stdout = sys.stdout, sys.stderr
    for kind in (BaseClient, ItemCalls):
        _note_calls(kind)
    module, _, name = given["handler"].rpartition(".")
    handler = getattr(import_module(module), name)
    answers = [handler(event, None) for event in given["events"]]
    json.dump({"answers": answers, "asked": asked}, answer_to, default=str)


if __name__ == "__main__":
    main()
