"""The admin without SQL, as its manual says it: docs/admin.md, whose example these tests run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.options import ShowFacets
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import models
from django.db.models import Q

from portal.dynamo import meter
from portal.errors import Invalid
from portal.nosql.admin import DynamoAdmin
from portal.nosql.planner.facade import Facade
from portal.nosql.planner.patterns import Get, Query
from portal.nosql.planner.planning import READ_LIMIT, Unplannable
from tenants.audit_trail import recording
from tenants.operators.facades import Account, AuditRow, Membership, Tenant
from tenants.sign_in.accounts import User
from tests.support.admin_example import code, example, in_the_admin
from tests.support.operators import IDENTITY, Operator, calls, make_operator, text_of
from tests.support.stored import put_all
from tests.support.world import World


@pytest.fixture
def shelf(engine: None) -> Iterator[Any]:
    """Sixty announcements, a-00 to a-59, every tenth urgent."""
    with in_the_admin() as module:
        items = [
            module.AnnouncementItem("ANNOUNCEMENT", f"a-{n:02}", text="x", level="info" if n % 10 else "urgent")
            for n in range(60)
        ]
        put_all(items)
        yield module.Announcement.objects


def names(rows: Any) -> list[str]:
    return [row.name for row in rows]


# --- the example ---


def test_the_example_of_the_manual_has_less_than_sixty_lines() -> None:
    assert len(code().splitlines()) < 60


# --- what is served, and at what price ---


@pytest.mark.parametrize(
    ("ask", "found", "operation", "items"),
    [
        (lambda shelf: [shelf.get(pk="a-07")], ["a-07"], "BatchGetItem", 1),
        (lambda shelf: shelf.filter(pk__in=["a-01", "nowhere", "a-02"]), ["a-01", "a-02"], "BatchGetItem", 2),
        (lambda shelf: shelf.all()[:10], [f"a-0{n}" for n in range(10)], "Query", 11),
        (lambda shelf: shelf.filter(name__startswith="A-1")[:50], [f"a-1{n}" for n in range(10)], "Query", 10),
        (lambda shelf: shelf.order_by("-name")[:2], ["a-59", "a-58"], "Query", 3),
    ],
    ids=["one object", "several by id", "a page and one row", "a prefix", "the other way"],
)
def test_an_answer_is_one_call_that_reads_what_it_needs(
    shelf: Any, bill: meter.Meter, ask: Any, found: list[str], operation: str, items: int
) -> None:
    assert names(ask(shelf)) == found
    assert [(c.operation, c.items) for c in bill.calls] == [(operation, items)]


def test_a_filter_that_no_key_serves_is_asked_of_rows_and_says_how_many(shelf: Any, bill: meter.Meter) -> None:
    page = shelf.filter(level="urgent").page(25)
    assert (names(page.objects), page.read, page.next) == ([f"a-{n}0" for n in range(6)], 60, None)
    assert len(bill.calls) == 1


def test_such_a_page_never_reads_more_than_its_limit(shelf: Any, bill: meter.Meter) -> None:
    item = example().AnnouncementItem
    put_all(item("ANNOUNCEMENT", f"b-{n:04}", text="x", level="info") for n in range(READ_LIMIT))
    first = shelf.filter(level="urgent").page(25)
    assert (len(first.objects), first.read) == (6, READ_LIMIT)
    second = shelf.filter(level="urgent").page(25, first.next)
    assert (second.objects, second.read, second.next) == ([], 60, None)


# --- cursors ---


@pytest.mark.parametrize("only", [{}, {"level": "info"}])
def test_pages_lead_forward_and_back_over_each_row_once(shelf: Any, only: dict[str, str]) -> None:
    planned = shelf.filter(**only)
    pages, cursor = [], ""
    while True:
        page = planned.page(7, cursor)
        pages.append(page)
        if page.next is None:
            break
        cursor = page.next
    assert [n for page in pages for n in names(page.objects)] == names(planned[:100])
    back = pages[-1]
    for page in reversed(pages[:-1]):
        back = planned.page(7, back.previous)
        assert names(back.objects) == names(page.objects)
    assert back.previous is None


def test_a_cursor_of_another_list_is_refused(shelf: Any) -> None:
    cursor = shelf.all().page(7).next
    for other in (shelf.filter(level="info"), shelf.order_by("-name"), shelf.filter(name__startswith="a")):
        with pytest.raises(Invalid):
            other.page(7, cursor)
    for damaged in (cursor[:-1], "x" + cursor, "0", "a" * 3000):
        with pytest.raises(Invalid):
            shelf.all().page(7, damaged)


# --- what is refused, before anything is read ---


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: Membership.objects.all(), "Memberships can be listed by user or by tenant. Choose one."),
        (lambda: Account.objects.all(), "Users can be listed if they may not sign in, or found by e-mail."),
        (
            lambda: Account.objects.filter(name="Bob"),
            "Users can be listed if they may not sign in, or found by e-mail.",
        ),
        (lambda: AuditRow.objects.filter(action="tenant.created"), "Audit trail can be listed by tenant"),
        (lambda: Tenant.objects.filter(plan="gold"), "Tenants listed by slug cannot be filtered by plan."),
        (
            lambda: Tenant.objects.filter(placement="bridge", status="active"),
            "Tenants listed by placement cannot be filtered by status. Tenants can be listed by placement or by slug.",
        ),
        (lambda: Tenant.objects.filter(slug__icontains="a"), "Tenants cannot be filtered by “slug__icontains”."),
        (lambda: Tenant.objects.filter(slug__regex="a"), "Tenants cannot be filtered by “slug__regex”."),
        (lambda: Tenant.objects.filter(slug__in=["a"]), "Tenants cannot be filtered by “slug__in”."),
        (lambda: Tenant.objects.filter(created_at__gt="2026-01-01"), "Tenants cannot be filtered by"),
        (lambda: Tenant.objects.filter(name__startswith="A"), "Tenants can be listed by placement or by slug."),
        (lambda: Tenant.objects.filter(~Q(status="active")), "never negated"),
        (lambda: Tenant.objects.filter(Q(status="active") | Q(slug="acme")), "joined by AND"),
        (lambda: Tenant.objects.order_by("name"), "Tenants are sorted by slug, and by nothing else."),
        (lambda: Tenant.objects.order_by("slug", "name"), "sorted by one thing at a time"),
        (lambda: Tenant.objects.exclude(status="active"), "never changed by one statement"),
        (lambda: Tenant.objects.all().delete(), "never changed by one statement"),
        (lambda: Tenant.objects.filter(status="active").update(status="x"), "never changed by one statement"),
        (lambda: Tenant.objects.count(), "Nothing is counted"),
        (lambda: Tenant.objects.all()[10:20], "no offsets"),
    ],
)
def test_what_no_pattern_serves_is_refused_unread(bill: meter.Meter, ask: Any, sentence: str) -> None:
    with pytest.raises(Unplannable, match=re.escape(sentence)):
        list(ask())
    assert bill.calls == []


def test_values_that_no_key_can_have_find_nothing_unread(bill: meter.Meter) -> None:
    for bad in ("", "x", "#", "a|b", "A" * 32, "\x00", "a/b/c", "9" * 5000, "ü" * 600, "../.."):
        for facade in (Tenant, Membership, Account):
            assert list(facade.objects.filter(pk=bad)) == []
        assert list(Membership.objects.filter(tenant_id=bad)) == []
        assert list(Membership.objects.filter(pk=f"{bad}/{bad}")) == []
    assert list(Tenant.objects.filter(slug__startswith="x" * 2000)) == []
    assert list(Tenant.objects.filter(slug="a").filter(slug="b")) == []
    assert bill.calls == []


def test_a_field_that_does_not_exist_is_an_error_as_in_django() -> None:
    with pytest.raises(FieldDoesNotExist):
        Tenant.objects.filter(nosuch="x")
    with pytest.raises(ValidationError):
        Tenant.objects.filter(created_at="yesterday")


def test_an_iteration_without_a_slice_stops_at_a_thousand(engine: None) -> None:
    item = example().AnnouncementItem
    put_all(item("ANNOUNCEMENT", f"a-{n:04}", text="x", level="info") for n in range(1001))
    with pytest.raises(Unplannable, match="more than 1000"):
        list(example().Announcement.objects.all())


# --- composite keys ---


def test_a_composite_key_is_one_id_with_a_slash(world: World, bill: meter.Meter) -> None:
    tenant_id, user_id = world.tenants["acme"].tenant_id, world.users["bob"].id
    before = len(bill.calls)
    by_tenant = {m.pk for m in Membership.objects.filter(tenant_id=tenant_id)}
    assert f"{tenant_id}/{user_id}" in by_tenant
    assert Membership.objects.get(pk=f"{tenant_id}/{user_id}").role == "agent"
    assert [m.pk for m in Membership.objects.filter(user_id=user_id)] == [f"{tenant_id}/{user_id}"]
    assert [c.operation for c in bill.calls[before:]] == ["Query", "GetItem", "Query"]


# --- options that cannot work are errors of `manage.py check` ---


class Thing(Facade):
    name = models.CharField(primary_key=True, max_length=10)
    size = models.CharField(max_length=10)

    patterns = (
        Get(None, ("name",), lambda: "THING"),  # type: ignore[arg-type]  # never read
        Query("by name", None, (), lambda: "THING", order="name"),  # type: ignore[arg-type]
    )

    class Meta(Facade.Meta):
        app_label = "tenants"


@pytest.mark.parametrize(
    ("option", "value", "number"),
    [
        ("list_editable", ("size",), "E002"),
        ("date_hierarchy", "size", "E002"),
        ("inlines", (admin.TabularInline,), "E002"),
        ("autocomplete_fields", ("size",), "E002"),
        ("raw_id_fields", ("size",), "E002"),
        ("filter_horizontal", ("size",), "E002"),
        ("list_select_related", True, "E002"),
        ("show_full_result_count", True, "E002"),
        ("show_facets", ShowFacets.ALWAYS, "E002"),
        ("actions_on_top", False, "E003"),
        ("search_fields", ("name",), "E005"),
        ("search_fields", ("^name",), "E005"),
        ("search_fields", ("=size",), "E005"),
        ("ordering", ("size",), "E006"),
        ("list_filter", ("size",), "E007"),
        ("list_filter", ("name",), "E007"),
    ],
)
def test_an_option_that_cannot_work_is_an_error(option: str, value: Any, number: str) -> None:
    made = type("ThingAdmin", (DynamoAdmin,), {"list_display": ("name", "size"), option: value})(Thing, admin.site)
    assert f"nosql_admin.{number}" in {error.id for error in made.check()}


def test_a_model_without_patterns_is_an_error() -> None:

    assert [error.id for error in DynamoAdmin(User, admin.site).check()] == ["nosql_admin.E001"]


def test_the_admins_of_the_portal_pass_their_checks() -> None:
    admin.autodiscover()
    assert len(admin.site._registry) > 5
    assert [error for made in admin.site._registry.values() for error in made.check()] == []


# --- the example through its pages ---

URL = "/admin/tenants/announcement/"


@pytest.fixture
def root(shelf: Any) -> Operator:
    make_operator()
    return Operator.signed_in()


def history(name: str) -> list[str]:
    rows = AuditRow.objects.filter(tenant_id=recording.PLATFORM, entity_type="announcement", entity_id=name)
    return [row.action for row in rows[:10]]


def test_a_model_of_sixty_lines_is_added_changed_and_removed_each_with_its_row(root: Operator, shelf: Any) -> None:
    assert root.fill(f"{URL}add/", name="new", text="Hello", level="info").status_code == 302
    assert root.fill(f"{URL}new/change/", text="Hello again").status_code == 302
    assert shelf.get(pk="new").text == "Hello again"
    assert "changed Announcement object (new) text: Hello text: Hello again" in root.says(f"{URL}new/history/")
    assert root.post(f"{URL}new/delete/", {"post": "yes"}).status_code == 302
    assert list(shelf.filter(pk="new")) == []
    assert history("new") == ["record.removed", "record.changed", "record.added"]


def test_what_is_there_already_is_not_overwritten(root: Operator, shelf: Any) -> None:
    refused = root.fill(f"{URL}add/", name="a-01", text="Mine", level="info")
    assert (refused.status_code, shelf.get(pk="a-01").text) == (409, "x")


@pytest.mark.parametrize("what", ["change", "remove"])
def test_a_race_of_the_example_is_lost_by_who_writes_second(
    root: Operator, shelf: Any, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    item = example().AnnouncementItem("ANNOUNCEMENT", "a-01", text="Theirs", level="info")
    write = recording.commit

    def somebody_is_faster(*args: Any) -> None:
        item.save() if what == "change" else item.delete()
        write(*args)

    monkeypatch.setattr(recording, "commit", somebody_is_faster)
    if what == "change":
        refused = root.fill(f"{URL}a-01/change/", text="Mine")
        assert (refused.status_code, shelf.get(pk="a-01").text) == (409, "Theirs")
        assert "you saw “x”, now it is “Theirs”, and you entered “Mine”" in text_of(refused)
    else:
        assert root.post(f"{URL}a-01/delete/", {"post": "yes"}, follow=True).status_code == 404
    assert history("a-01") == []


def test_the_list_of_the_example_is_one_query_and_says_what_it_read(root: Operator) -> None:
    says = root.says(f"{URL}?level__exact=urgent")
    assert "Read 60, 6 match" in says
    with calls() as made:
        page = root.get(URL)
    assert [call.operation for call in made] == [IDENTITY, "Query"]
    assert "There are none" not in page.content.decode()
