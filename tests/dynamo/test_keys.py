"""Keys are the first layer of isolation: no builder makes a key of another tenant, whatever it is handed."""

from __future__ import annotations

import ast
import inspect
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from django.conf import settings as django_settings
from hypothesis import Phase, assume, example, find, given, settings
from hypothesis import strategies as st

from delivery.timers import stored as due_keys
from portal import clock
from portal.dynamo import fencing
from portal.schema import keys
from proofs.isolation import keys as proof_keys
from tenants.audit_trail.stored import audit_actor_key
from tenants.sign_in.stored import attempts_key, email_key, user_key
from tenants.tenancy.stored import placed_key, slug_key
from tests.support import sources
from tickets.attachments import stored as file_keys
from tickets.counting import stored as aggregate_keys
from tickets.data import stored as import_keys
from tickets.letters import stored as letter_keys
from tickets.search import stored as search_keys
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status

ACME, GLOBEX = "0123456789abcdef" * 2, "f" * 32

tenant_ids = st.integers(0, 2**128 - 1).map("{:032x}".format)
numbers = st.integers(1, 10**12)
# What may stand between delimiters: anything but the delimiters and control characters.
parts = st.text(st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="#|"), min_size=1, max_size=10)

# They read a key, or make one of another kind: the sort key of a list that all tenants are in; or the same key as a
# builder above, of what that one makes on the way.
TENANT_READERS = {
    import_keys.import_source_listed: (import_keys.listed_source("x"),),
    ticket_keys.ticket_number: ("x",),
    aggregate_keys.marker_met: ("MET#b#0",),
    placed_key: ("bridge",),
    keys.belongs_to: ("x",),
    ticket_keys.place_of_requester: ("rq_" + "0" * 32,),
    file_keys.object_key: ("0" * 32,),
    file_keys.upload_key: ("0" * 32,),
    file_keys.preview_key: ("0" * 32,),
    letter_keys.raw_key: ("x",),
    letter_keys.raw_prefix: (),
}

# The arguments of builders by their names, where not any number or part is one.
ARGUMENTS: dict[str, st.SearchStrategy[Any]] = {
    "bucket": st.sampled_from(file_keys.BUCKETS),
    "due_bucket": st.sampled_from(due_keys.BUCKETS),
    "endpoint": st.integers(0, 2**64 - 1).map("ep_{:016x}".format),
    "requester_id": st.uuids().map(lambda one: f"rq_{one.hex}"),
    "row_id": st.uuids().map(lambda row: row.hex),
    "segment_id": st.integers(1, 10**10 - 1).map(search_keys.segment_id),
    "shard": st.integers(0, 15),
    "status": st.sampled_from([s.value.upper() for s in Status]),
    "user_id": tenant_ids,
}


def arguments(build: Callable[..., Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """What a builder can be called with beside the tenant."""
    _, *others = inspect.signature(build).parameters.values()
    return st.tuples(*(ARGUMENTS.get(p.name, numbers if p.annotation == "int" else parts) for p in others))


def modules_of_keys() -> list[ModuleType]:
    """The kernel's machinery, the `keys.py` or `stored.py` of every package, and the keys of a move."""
    root = Path(django_settings.BASE_DIR)
    paths = [
        p
        for app in ("portal", "tenants", "delivery", "tickets", "api", "proofs")
        for name in ("keys.py", "stored.py")
        for p in sorted((root / app).rglob(name))
    ]
    found = [import_module(".".join(path.relative_to(root).with_suffix("").parts)) for path in paths]
    return [*found, fencing]


# Packages build on the first two, which take any name and parts; their own builders are what is tried here.
TAKING_A_TENANT: set[Callable[..., Any]] = {
    function
    for module in modules_of_keys()
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__
    and not name.startswith("_")
    and [*inspect.signature(function).parameters][:1] == ["tenant_id"]
} - {keys.collection, keys.composite, fencing.fenced}
TENANT_BUILDERS = {
    build: arguments(build)
    for build in sorted(TAKING_A_TENANT - {*TENANT_READERS}, key=lambda b: (b.__module__, b.__name__))
}
calls = st.sampled_from([*TENANT_BUILDERS]).flatmap(lambda build: st.tuples(st.just(build), TENANT_BUILDERS[build]))


@cache
def fine(build: Callable[..., Any]) -> tuple[Any, ...]:
    """Arguments for a builder or reader, beside the tenant, that it takes."""
    return (
        TENANT_READERS[build]
        if build in TENANT_READERS
        else find(TENANT_BUILDERS[build], lambda _: True, settings=settings(phases=[Phase.generate]))
    )


def test_these_tests_find_the_builders_that_take_a_tenant() -> None:
    assert {keys.tenant, ticket_keys.ticket, audit_actor_key, proof_keys.proof, fencing.move_key} <= {*TENANT_BUILDERS}
    assert {*TENANT_READERS} <= TAKING_A_TENANT


NOT_TENANT_IDS = [
    "",
    "0" * 31,
    "0" * 33,
    ACME.upper(),
    ACME[:-1] + "F",
    ACME[:-1] + "g",
    ACME[:-1] + "*",
    ACME[:-1] + "?",
    ACME[:-1] + "#",
    ACME[:-1] + "|",
    ACME[:-1] + "\n",
    ACME + "\n",
    ACME + "\r\n",
    ACME + "\0",
    " " + ACME[1:],
    ACME[:-1] + "\N{ARABIC-INDIC DIGIT THREE}",
    ACME[:-1] + "\N{FULLWIDTH DIGIT ONE}",
    ACME[:-1] + "\N{CYRILLIC SMALL LETTER A}",
    ACME[:-1] + "\N{FULLWIDTH LATIN SMALL LETTER A}",
    ACME[:-1] + "\u200b",
    "01234567-89ab-cdef-0123-456789abcdef",
    f"{ACME}|TICKET#1",
    "*" * 32,
    None,
    7,
    ACME.encode(),
    [ACME],
]


# --- tenant ids ---


def test_an_id_that_is_not_32_lower_case_hex_digits_is_refused_by_every_builder() -> None:
    for build in (*TENANT_BUILDERS, *TENANT_READERS):
        args = fine(build)
        for tenant_id in NOT_TENANT_IDS:
            with pytest.raises(ValueError, match="32 lower-case hex"):
                pytest.fail(f"{build.__name__} of {tenant_id!r} gives {build(tenant_id, *args)}")


@given(st.text(max_size=33) | st.text(string.hexdigits + "#|*?\n", min_size=31, max_size=33), calls)
def test_any_text_that_is_not_a_tenant_id_is_refused(tenant_id: str, call: tuple[Any, Any]) -> None:
    assume(not (len(tenant_id) == 32 and set(tenant_id) <= set("0123456789abcdef")))
    build, args = call
    with pytest.raises(ValueError, match="32 lower-case hex"):
        build(tenant_id, *args)


@pytest.mark.parametrize("nowhere", ["7", GLOBEX, "", "silo", "silo/", "silo/7", "bridge/x", "bridge\n", None, 7])
def test_what_is_no_placement_stands_in_no_key(nowhere: Any) -> None:
    with pytest.raises(ValueError, match="placement"):
        placed_key(ACME, nowhere)


def test_a_tenants_own_tables_are_listed_by_its_id_and_where_they_are() -> None:
    assert [placed_key(ACME, where) for where in ("bridge", "silo/there")] == [
        f"{ACME}/bridge", f"{ACME}/silo/there",
    ]  # fmt: skip


def test_a_key_belongs_to_nobody_who_is_not_a_tenant() -> None:
    for nobody in ("", "*", ACME + "\n"):
        with pytest.raises(ValueError, match="32 lower-case hex"):
            keys.belongs_to(nobody, nobody)


# --- keys of different tenants ---


@given(tenant_ids, tenant_ids, calls)
@example(ACME, ACME[:-1] + "e", (ticket_keys.ticket, (1,)))
def test_no_tenants_key_begins_with_what_opens_another_tenants_keys(
    mine: str, theirs: str, call: tuple[Any, Any]
) -> None:
    assume(mine != theirs)
    build, args = call
    key = build(mine, *args)
    # The forms in the isolation policy: the bare id of small tables, and the composites with their delimiters.
    assert key != theirs
    assert not key.startswith(f"TENANT#{theirs}|")
    # Not even a policy that forgot the delimiter would match.
    assert not key.startswith((theirs, f"TENANT#{theirs}"))
    assert key == mine or key.startswith((f"TENANT#{mine}|", f"{mine}#"))


@given(tenant_ids, tenant_ids, calls)
def test_a_key_belongs_to_its_own_tenant_only(mine: str, theirs: str, call: tuple[Any, Any]) -> None:
    assume(mine != theirs)
    build, args = call
    key = build(mine, *args)
    assert keys.belongs_to(mine, key)
    assert not keys.belongs_to(theirs, key)


@given(tenant_ids, st.text(max_size=60))
@example(ACME, "TENANT#")
@example(ACME, f"TENANT#{ACME}")
@example(ACME, f"tenant#{ACME}|TICKET#1")
@example(ACME, f" TENANT#{ACME}|TICKET#1")
@example(ACME, f"TENANT#{ACME}0|TICKET#1")
@example(ACME, f"{ACME}|TICKET#1")
@example(ACME, f"{ACME}\n")
def test_no_other_text_belongs_to_a_tenant(tenant_id: str, text: str) -> None:
    assume(text != tenant_id and not text.startswith(f"TENANT#{tenant_id}|"))
    assert not keys.belongs_to(tenant_id, text)


@given(st.sampled_from([ACME, GLOBEX]), calls, st.sampled_from([ACME, GLOBEX]), calls)
@example(ACME, (ticket_keys.request, ("1",)), ACME, (ticket_keys.ticket, (1,)))
@example(ACME, (ticket_keys.ticket, (1,)), ACME, (ticket_keys.ticket, (11,)))
@example(ACME, (ticket_keys.tenant_status, ("OPEN", 1)), ACME, (ticket_keys.tenant_status, ("OPEN", 11)))
def test_different_tenants_or_arguments_never_make_the_same_key(
    tenant: str, call: tuple[Any, Any], other_tenant: str, other_call: tuple[Any, Any]
) -> None:
    build, args = call
    other_build, other_args = other_call
    assume((tenant, build, args) != (other_tenant, other_build, other_args))
    assert build(tenant, *args) != other_build(other_tenant, *other_args)


@pytest.mark.parametrize("text", ["", "a#b", "a|b", "#", "a\nb", "a\0b", "a\x7fb", "a" * 513, None, 7])
def test_no_part_can_bring_a_delimiter_of_its_own(text: Any) -> None:
    for build, args in (
        (ticket_keys.request, (ACME, text)),
        (ticket_keys.tenant_status, (ACME, text, 0)),
        (ticket_keys.activity, (text, "e1")),
        (ticket_keys.activity, ("2026-01-31T12:00:00.000000Z", text)),
        (slug_key, (text,)),
        (attempts_key, (text, "somebody", 1)),
    ):
        with pytest.raises(ValueError, match="cannot stand in a key"):
            build(*args)
    if text:
        with pytest.raises(ValueError, match="cannot stand in a key"):
            ticket_keys.resolver_updated(text, "2026-01-31T12:00:00.000000Z")


@pytest.mark.parametrize("number", [0, -1, True, False, 1.0, "1", None])
def test_a_ticket_number_is_a_positive_integer(number: Any) -> None:
    with pytest.raises(ValueError, match="a ticket number is a whole number"):
        ticket_keys.ticket(ACME, number)


# --- reading a ticket's key ---


@given(tenant_ids, numbers)
def test_a_tickets_number_is_read_back_from_its_key(tenant_id: str, number: int) -> None:
    assert ticket_keys.ticket_number(tenant_id, ticket_keys.ticket(tenant_id, number)) == number


@given(tenant_ids, tenant_ids, numbers)
def test_a_ticket_of_another_tenant_has_no_number_here(mine: str, theirs: str, number: int) -> None:
    assume(mine != theirs)
    assert ticket_keys.ticket_number(mine, ticket_keys.ticket(theirs, number)) is None


@given(calls)
def test_keys_of_other_things_are_no_tickets(call: tuple[Any, Any]) -> None:
    build, args = call
    assume(build is not ticket_keys.ticket)
    assert ticket_keys.ticket_number(ACME, build(ACME, *args)) is None


@given(st.text(max_size=20) | st.text("0123456789+-_. \u0663\uff11", max_size=5))
@pytest.mark.parametrize("prefix", [f"TENANT#{ACME}|TICKET#", ""])
def test_a_number_is_read_from_no_text_that_the_builder_would_not_have_made(prefix: str, text: str) -> None:
    number = ticket_keys.ticket_number(ACME, prefix + text)
    assert number is None or ticket_keys.ticket(ACME, number) == prefix + text


@pytest.mark.parametrize(
    "rest", ["", "0", "01", "-1", "+1", "1 ", " 1", "1\n", "1_0", "1.0", "\u0663", "\uff11", "\u00b2", "1|x"]
)
def test_look_alikes_of_a_ticket_number_are_none(rest: str) -> None:
    assert ticket_keys.ticket_number(ACME, f"TENANT#{ACME}|TICKET#{rest}") is None


# --- sort keys ---


# Microseconds from 1970 to 2286.
moments = st.integers(0, 10**16).map(lambda us: clock.stamp(clock.parse("1970-01-01T00:00:00.000000Z"), offset=us))


@given(moments, moments, parts, parts)
def test_activity_sorts_by_time_and_before_the_heads_of_the_ticket(a: str, b: str, id_a: str, id_b: str) -> None:
    first, second = ticket_keys.activity(a, id_a), ticket_keys.activity(b, id_b)
    if a != b:
        assert (first < second) == (clock.parse(a) < clock.parse(b))
    # Read backwards, a ticket begins with its summary and its description.
    assert ticket_keys.SUMMARY > ticket_keys.DETAIL > max(first, second)
    assert first.startswith(ticket_keys.ACTIVITY_PREFIX)


@given(tenant_ids | st.just(""), moments)
def test_a_resolvers_rows_begin_with_the_resolver_and_then_sort_by_time(resolver: str, at: str) -> None:
    assert ticket_keys.resolver_updated(resolver, at) == ticket_keys.resolver_prefix(resolver) + at
    assert ticket_keys.resolver_prefix(resolver).endswith("#")


@given(parts, parts)
def test_the_id_of_an_entry_is_read_back_from_its_key(at: str, entry_id: str) -> None:
    assert ticket_keys.entry_id(ticket_keys.activity(at, entry_id)) == entry_id


def test_a_ticket_of_nobody_is_indexed_as_unassigned() -> None:
    assert ticket_keys.resolver_updated("", "2026") == "UNASSIGNED#2026"


# --- shards ---


def test_the_shard_of_a_ticket_never_changes() -> None:
    # Stored rows carry these: another hash would hide every ticket of a sharded tenant.
    assert [ticket_keys.status_shard(n, 4) for n in range(1, 13)] == [2, 0, 1, 2, 0, 0, 2, 2, 1, 0, 2, 3]
    assert [ticket_keys.status_shard(n, 16) for n in (1, 2, 3, 1000, 10**6, 10**15)] == [6, 12, 1, 2, 4, 12]


@pytest.mark.parametrize("shards", range(2, 17))
def test_shards_are_even(shards: int) -> None:
    count = 20_000
    found = Counter(ticket_keys.status_shard(n, shards) for n in range(1, count + 1))
    assert set(found) == set(range(shards))
    expected = count / shards
    chi_square = sum((found[s] - expected) ** 2 / expected for s in range(shards))
    # Mean S-1, standard deviation sqrt(2(S-1)); four of those above is once in some 10,000 good hashes.
    assert chi_square < (shards - 1) + 4 * (2 * (shards - 1)) ** 0.5


def test_the_fullest_of_two_hundred_shards_holds_little_more_than_its_share() -> None:
    found = Counter(ticket_keys.status_shard(n, 200) for n in range(1, 20_001))
    assert max(found.values()) <= 1.35 * 20_000 / 200


@given(numbers, st.integers(1, 64))
def test_a_shard_is_in_range(number: int, shards: int) -> None:
    assert 0 <= ticket_keys.status_shard(number, shards) < shards


@pytest.mark.parametrize("shards", [0, -1])
def test_there_is_at_least_one_shard(shards: int) -> None:
    with pytest.raises(ValueError, match="at least one shard"):
        ticket_keys.status_shard(1, shards)


def test_no_index_partition_has_a_negative_shard() -> None:
    with pytest.raises(ValueError, match="from 0"):
        ticket_keys.tenant_status(ACME, "OPEN", -1)


# --- platform keys ---


addresses = st.emails() | st.ip_addresses().map(str) | parts


@given(st.sampled_from(["account", "address"]), addresses, st.integers(0, 10**7))
@example("account", "alice@example.com", 1)
@example("address", "192.0.2.7", 1)
def test_a_sign_in_counter_holds_no_address(kind: str, subject: str, window: int) -> None:
    key = attempts_key(kind, subject, window)
    assert re.fullmatch(rf"{kind}#[0-9a-f]{{32}}#{window}", key)
    if len(subject) > 3:
        assert subject.casefold() not in key
        assert subject.casefold().encode().hex() not in key


def test_a_sign_in_counter_is_one_per_kind_subject_and_window() -> None:
    counters = {
        attempts_key(kind, subject, window)
        for kind in ("account", "address")
        for subject in ("alice@example.com", "bob@example.com")
        for window in (1, 2)
    }
    assert len(counters) == 8
    assert attempts_key("account", " Alice@Example.COM ", 1) == attempts_key("account", "alice@example.com", 1)


@given(st.emails(), st.sampled_from(["", " ", "\t", "\n "]))
def test_an_address_is_the_same_in_any_case(address: str, space: str) -> None:
    folded = email_key(address)
    assert email_key(space + address.swapcase() + space) == folded
    assert folded.startswith("EMAIL#")
    assert email_key(folded.removeprefix("EMAIL#")) == folded


@pytest.mark.parametrize("address", ["", "  ", "a\0@b.c", "a\nb@c.d", "a" * 321, "\u00e9" * 161, "\ud800@b.c"])
def test_what_is_no_address_makes_no_key(address: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # a lone surrogate's is Python's own
        email_key(address)


def test_a_user_id_is_held_to_the_same_form() -> None:
    for user_id in NOT_TENANT_IDS:
        with pytest.raises(ValueError, match="32 lower-case hex"):
            user_key(user_id)


@given(tenant_ids, parts, st.emails())
def test_accounts_addresses_and_slugs_never_meet_in_their_table(user_id: str, slug: str, address: str) -> None:
    assert (
        len(
            {
                user_key(user_id),
                slug_key(slug),
                email_key(address),
                email_key(user_id),
            }
        )
        == 4
    )


# --- nobody else makes keys ---

# The name of a key's section with its delimiter: "TENANT#", "|TICKET", "USER#" and whatever follows that pattern.
_SECTION = re.compile(r"[A-Z]{3,}#|\|[A-Z]{3,}")
# A delimiter for str.join, split, partition or "+".
_BARE = re.compile(r"[#|]")
# "%s#%s" and "{}|{}" before they are filled in.
_UNFILLED = re.compile(r"(%s|%d|\{\w*\})[#|]|\w[#|](%s|%d|\{\w*\})")
# In an f-string, \0 stands for a placeholder. "Ticket #\0" is a sentence and "#\0 = :\0" an update expression: there a
# space or nothing comes before the delimiter, which no key has.
_FILLED = re.compile(r"\0#|\0\|(\0|[A-Z]|$)|\w[#|]\0")

ALLOWED = {
    ("tenants/audit_trail/browsing.py", "|"): "a choice in a regular expression",
    ("tenants/tenancy/redaction.py", "|"): "a choice in a regular expression",
    ("tickets/desk/ticket_presenters.py", "\0?\0#entry-\0"): "an address of a page and a place on it",
    ("tickets/search/presenters.py", "\0?\0#activity-title"): "an address of a page and a place on it",
    ("tenants/sign_in/accounts.py", "\0|\0"): "what a session's MAC is made over; never stored",
    ("tenants/tenancy/context.py", "\0|\0"): "what a page mark's MAC is made over; never stored",
    ("tenants/sign_in/passwords.py", "|"): "what a reset link's MAC is made over; never stored",
    ("tickets/admin/ticket_admin.py", "#"): "what people write before a ticket's number",
    ("tickets/desk/page_texts.py", "#"): "what people write before a ticket's number",
    ("tickets/admin/rights_pages.py", "TENANT#"): "how the declared form of a tenant's key begins; no key is made",
    ("portal/isolation/guard.py", "#"): "what the names in a DynamoDB expression begin with",
    ("tickets/search/search_query.py", "#"): "what people write before a ticket's number",
    ("tenants/sign_in/entering_views.py", "|"): "what the MAC of half a sign-in is made over; never stored",
    ("tenants/sign_in/factor_secrets.py", "\0|\0"): "a hash of a code, and the owner inside a sealed text; no keys",
    ("tenants/sign_in/factor_secrets.py", "|"): "whose a sealed text is, inside of the seal",
    ("tickets/outside/looks.py", "#"): "what a colour in a style sheet begins with",
    ("tickets/replies/reply_mails.py", "\0?rating=\0#rating"): "an address of a page and a place on it",
    ("portal/hosting/network.py", "|"): "what CloudFormation's id of a route has before its destination",
    ("tickets/search/text_match.py", "|"): "what joins the alternatives of a pattern",
}


class Literal(NamedTuple):
    path: str
    line: int
    text: str


def modules() -> list[Path]:
    root = Path(django_settings.BASE_DIR)
    return [
        p for top in ("portal", "tenants", "delivery", "tickets", "api") for p in sorted((root / top).rglob("*.py"))
    ]


def literals(path: Path) -> Iterator[Literal]:
    """The strings of a module; of an f-string, its text with \\0 for each placeholder. Docstrings are left out."""
    root = Path(django_settings.BASE_DIR)
    name, nodes = str(path.relative_to(root)), [sources.tree(path)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(v.value) if isinstance(v, ast.Constant) else "\0" for v in node.values)
            yield Literal(name, node.lineno, text)
            nodes += (inner for part in node.values for inner in ast.walk(part) if isinstance(inner, ast.JoinedStr))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Literal(name, node.lineno, node.value)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            nodes += ast.iter_child_nodes(node)


_SHAPE = re.compile(r"#<\w+>|\|[A-Z]+, <part>|^<tenant>, ")  # what declare_keys says of keys; no key is made by it


def forms_a_key(text: str) -> bool:
    return not _SHAPE.search(text) and any(
        (_SECTION.search(text), _BARE.fullmatch(text), _UNFILLED.search(text), _FILLED.search(text)),
    )


@pytest.mark.parametrize(
    "text", ["TENANT#", "|TICKET", "USER#\0", "EMAIL#x", "\0#\0", "\0|AGGREGATE", "#", "|", "{}#{}", "%s|x", "v\0#"]
)
def test_the_rule_knows_a_key(text: str) -> None:
    assert forms_a_key(text)


@pytest.mark.parametrize(
    "text", ["Ticket #\0 is open.", "#main", "#h = :h", "ADD #n :by", "#\0 = :\0", "a | b", "# |", r"[^\s,#|<>]+"]
)
def test_the_rule_leaves_sentences_selectors_and_expressions_alone(text: str) -> None:
    assert not forms_a_key(text)


@pytest.fixture(scope="module", autouse=True)
def only_while_they_are_read() -> Iterator[None]:
    with sources.reading():
        yield


def test_keys_are_made_in_one_module_only() -> None:
    others = [path for path in modules() if path != Path(keys.__file__)]
    formed = [
        f"{literal.path}:{literal.line}: {literal.text!r} forms a key; keys are made in portal/schema/keys.py"
        for path in others
        for literal in literals(path)
        if forms_a_key(literal.text) and (literal.path, literal.text) not in ALLOWED
    ]
    assert not formed, "\n".join(formed)


@pytest.mark.parametrize(("path", "text"), ALLOWED)
def test_an_exception_to_the_rule_is_still_needed(path: str, text: str) -> None:
    assert any(f.text == text for f in literals(Path(django_settings.BASE_DIR) / path))
