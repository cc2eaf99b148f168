"""A system of a tenant that calls the API, as Django's test client."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

from django.test import Client

from tenants.api_keys.scopes import Scope
from tests.support import engine_memory
from tests.support.api_keys import make_key
from tests.support.world import World

EVERYTHING = tuple(Scope)


class ApiClient(Client):
    """Sends a key with each request, and bodies as JSON."""

    def __init__(self, key: str) -> None:
        super().__init__(raise_request_exception=False)
        self.key = key

    def call(self, method: str, path: str, body: object = None, *, api: str = "/api/v1", **headers: str) -> Any:
        """Call an address of version 1. Headers are given by name, with `_` for `-`; an empty one is not sent."""
        given = {"Authorization": f"Bearer {self.key}", **{n.replace("_", "-"): v for n, v in headers.items()}}
        sent = {name: value for name, value in given.items() if value}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        kind = sent.pop("Content-Type", "application/json")
        return self.generic(method, api + path, data, kind if data else "", headers=sent)

    def ask(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def send(self, path: str, body: object = None, **headers: str) -> Any:
        return self.call("POST", path, body, **headers)


def api_client(world: World, *scopes: Scope, where: str = "acme", name: str = "", **choice: Any) -> ApiClient:
    """A client with a new key of this desk that has these scopes, or all of them."""
    owner = world.context("alice" if where == "acme" else "charlie", where)
    said = repr((sorted(scopes), owner.tenant_id, name, sorted(choice.items())))
    name = name or f"Key {uuid.uuid4().hex}"  # no two keys of a desk share a name

    def make() -> str:
        return make_key(owner, *(scopes or EVERYTHING), name=name, **choice)[1]

    return ApiClient(engine_memory.continued(f"key-{hashlib.sha256(said.encode()).hexdigest()}", make))
