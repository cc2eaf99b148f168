"""The API's document and its page: made from the code, whole, and right about what the API does."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import get_resolver
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from api.documents import openapi
from api.edge import problem_responses
from api.v1.version import version_1
from portal.errors import PortalError
from tenants.api_keys.scopes import Scope
from tests.desk.test_cost import _watching
from tests.support.api_client import api_client
from tests.support.world import World
from tickets.desk import creating
from tickets.ticket import fields

DOCUMENT: dict[str, Any] = json.loads(openapi.text())
ROUTES = [(f"{m.upper()} {path}", told) for path, ms in DOCUMENT["paths"].items() for m, told in ms.items()]
SCHEMAS = DOCUMENT["components"]["schemas"]
EXAMPLES = [name for name, schema in SCHEMAS.items() if "example" in schema]


def fits(value: object, name: str) -> None:
    schema = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
    OAS31Validator(schema, format_checker=OAS31Validator.FORMAT_CHECKER).validate(value)


def test_the_document_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_the_document_has_every_route_and_no_other() -> None:
    assert get_resolver().url_patterns  # which declares the converters
    patterns = [(re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(p.pattern)), p.callback) for p in version_1.urls[0]]
    served = {f"{method} /api/v1/{path}" for path, view in patterns for method in view.api_routes}
    assert served == {name for name, _ in ROUTES}


def test_a_route_says_its_scope_and_what_can_go_wrong() -> None:
    for name, told in ROUTES:
        assert told["x-scope"] in set(Scope), name
        assert told["security"] == [{"ApiKey": []}], name
        assert {"401", "403", "422", "429", "503"} <= set(told["responses"]), name
        assert all("description" in p or p["in"] != "header" for p in told.get("parameters", ())), name
        problems = [r for status, r in told["responses"].items() if int(status) >= 400]
        assert all("application/problem+json" in r["content"] for r in problems), name


@pytest.mark.parametrize(
    ("method", "path", "header", "value"),
    [
        ("POST", "/tickets", "Idempotency-Key", value)
        for value in ("!", "~" * 255, "a b", "x" * 256, "\u00e9", "a\tb", "order-4711")
    ]
    + [
        ("PATCH", "/tickets/{number}", "If-Match", value)
        for value in ("*", '"a"', 'W/"a"', '"a", W/"b"', '""', "a", '"a', '"a" "b"', "W/", '*, "a"')
    ],
)
def test_a_header_is_refused_where_the_document_says_so_and_nowhere_else(
    world: World, method: str, path: str, header: str, value: str
) -> None:
    creating.create(world.context("alice", "acme"), title="Ticket 1")
    (schema,) = [p["schema"] for p in dict(ROUTES)[f"{method} /api/v1{path}"]["parameters"] if p["name"] == header]
    sent = {header.replace("-", "_"): value}
    answer = api_client(world).call(method, path.format(number=1), {"title": "Other"}, **sent)
    refused = answer.status_code == 422 and answer.json()["field"] == header
    assert refused == (re.search(schema["pattern"], value) is None), answer.content


def test_each_example_of_the_document_fits_its_schema() -> None:
    for name in EXAMPLES:
        fits(SCHEMAS[name]["example"], name)


def test_everything_that_is_answered_has_an_example() -> None:
    answered = {
        content["schema"]["$ref"].rpartition("/")[2]
        for _, told in ROUTES
        for response in told["responses"].values()
        for content in response.get("content", {}).values()
    }
    assert answered - set(EXAMPLES) == set()


def test_the_limits_of_the_document_are_those_of_the_rules() -> None:
    made, said = SCHEMAS["TicketToCreate"]["properties"], SCHEMAS["CommentToAdd"]["properties"]["body"]
    assert (made["title"]["maxLength"], made["description"]["maxLength"]) == (
        fields.TITLE_LIMIT,
        fields.DESCRIPTION_LIMIT,
    )
    assert (made["tags"]["maxItems"], made["tags"]["items"]["maxLength"]) == (fields.TAGS_LIMIT, fields.TAG_LIMIT)
    assert made["tags"]["items"]["pattern"]
    assert (said["minLength"], said["maxLength"]) == (1, fields.COMMENT_LIMIT)


def test_the_document_tells_the_headers_of_answers() -> None:
    told = {told["operationId"]: told["responses"] for _, told in ROUTES}
    assert {"ETag", "RateLimit", "X-Request-Id"} <= set(told["read_ticket"]["200"]["headers"])
    assert "Link" in told["list_tickets"]["200"]["headers"]
    assert {"ETag", "Location"} <= set(told["create_ticket"]["201"]["headers"])
    assert all("Retry-After" in responses["429"]["headers"] for responses in told.values())
    assert "Retry-After" in told["create_ticket"]["409"]["headers"]


def test_an_answer_has_no_header_of_ours_that_the_document_does_not_tell(world: World) -> None:
    world.tickets("acme", 3)
    client = api_client(world)
    ours = set(DOCUMENT["components"]["headers"])
    asked = {"list_tickets": "/tickets?limit=1", "read_ticket": "/tickets/1", "list_members": "/members"}
    for name, response in (
        *((name, client.ask(path)) for name, path in asked.items()),
        ("create_ticket", client.send("/tickets", {"title": "x"})),
        ("change_ticket", client.call("PATCH", "/tickets/1", {"title": "x"})),
        ("add_comment", client.send("/tickets/1/comments", {"body": "x"})),
        ("read_ticket", client.ask("/tickets/99")),
        *(("create_ticket", client.send("/tickets", {"title": "x"}, Idempotency_Key="1")) for _ in range(2)),
        *(("add_comment", client.send("/tickets/99/comments", {"body": "x"}, Idempotency_Key="2")) for _ in range(2)),
    ):
        (told,) = (told for _, told in ROUTES if told["operationId"] == name)
        sent = {header for header in ours if header in response}
        assert sent <= set(told["responses"][str(response.status_code)]["headers"]), name


def test_each_tag_of_a_route_is_described() -> None:
    described = {tag["name"] for tag in DOCUMENT["tags"] if tag["description"]}
    assert {tag for _, told in ROUTES for tag in told["tags"]} == described


def test_each_status_says_its_codes() -> None:
    for _, told in ROUTES:
        for status, response in told["responses"].items():
            if int(status) >= 400:
                assert response["description"].endswith(", ".join(problem_responses.CODES[int(status)]))


# Of the desk's forms, of requesters' pages and of workers; what is no fault of a request is answered by 500 or 503.
_NOT_OF_THE_API = {"unseen", "not_ratable", "isolation", "credentials_refused", "gone", "archive_fault"}


def test_each_error_that_has_a_code_of_its_own_is_among_the_codes_of_its_status() -> None:
    def kinds(of: type[PortalError]) -> set[type[PortalError]]:
        return {of}.union(*map(kinds, of.__subclasses__()))

    for layer in ("api", "delivery", "portal", "tenants", "tickets"):
        for path in (settings.BASE_DIR / layer).rglob("*.py"):
            if '\n    code = "' in path.read_text():
                import_module(".".join(path.relative_to(settings.BASE_DIR).with_suffix("").parts))
    coded = [kind for kind in kinds(PortalError) if isinstance(vars(kind).get("code"), str)]
    told = {problem_responses._kind(kind.__new__(kind)) for kind in coded}
    known = {(status, code) for status, codes in problem_responses.CODES.items() for code in codes}
    assert {(409, "not_mergeable"), (422, "address_taken"), (503, "being_moved")} <= told
    assert {one for one in told - known if one[0] != 500 and one[1] not in _NOT_OF_THE_API} == set()


def test_the_document_is_made_once_and_sent_once() -> None:
    takes_gzip = Client(headers={"Accept-Encoding": "gzip"})
    first = takes_gzip.get("/api/v1/openapi.json")
    again = takes_gzip.get("/api/v1/openapi.json", headers={"If-None-Match": first["ETag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert len(first.content) < len(openapi.text()) / 4
    assert "Content-Type" not in again
    assert openapi.text() is openapi.text()


@pytest.mark.parametrize("address", ["/api/v1/openapi.json", "/api/v1/docs/"])
def test_what_describes_the_api_is_only_asked_for(address: str) -> None:
    asked = [Client().generic(method, address).status_code for method in ("GET", "HEAD", "POST", "PUT", "DELETE")]
    assert asked == [200, 200, 405, 405, 405]


# --- the page ---


def test_the_page_shows_every_route_with_its_scope_and_every_shape() -> None:
    with _watching() as bills:
        page = Client().get("/api/v1/docs/")
    text = page.content.decode()
    assert (page.status_code, bills[0].trips) == (200, 0)
    for name, told in ROUTES:
        assert f'id="{told["operationId"]}"' in text
        assert name in text
        assert f"<code>{told['x-scope']}</code>" in text
    for link in {part.split('"')[0] for part in text.split('href="#shape-')[1:]}:
        assert f'id="shape-{link}"' in text


def test_the_page_says_types_once_and_leads_from_them_to_the_shapes() -> None:
    text = Client().get("/api/v1/docs/").content.decode()
    shown = re.sub(r"<pre.*?</pre>|<textarea.*?</textarea>", "", text, flags=re.DOTALL)
    assert "`" not in shown
    assert "<code>next</code>" in shown
    assert not re.search(r"(query|header|path), [^<]*null", shown)
    assert "None where" not in shown
    assert 'query, <a href="#shape-Priority">Priority</a></span>' in shown
    assert 'object of integer by <a href="#shape-Status">Status</a></span>' in shown
    assert not re.search(r">(\w+)</a>[^<]*</span>[^<]*<a [^>]*>\1</a>", shown)


def test_the_page_keeps_the_strict_policy_and_has_nothing_inline() -> None:
    page = Client().get("/api/v1/docs/")
    text = page.content.decode()
    assert "default-src 'self'" in page["Content-Security-Policy"]
    assert "unsafe" not in page["Content-Security-Policy"]
    assert " style=" not in text
    assert " onclick=" not in text
    assert "<script>" not in text


def test_the_page_is_shown_to_members_with_their_desk_above_it(world: World) -> None:
    page = world.browser("alice", "acme").get("/api/v1/docs/")
    assert page.status_code == 200
    assert "Acme" in page.content.decode()
    assert get_resolver().resolve("/api/v1/docs/").func.access.level == "public"
