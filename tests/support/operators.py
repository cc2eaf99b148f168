"""Root, who runs the platform and belongs to no tenant, in the admin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any

from django.contrib.auth.hashers import make_password

from portal.dynamo import meter
from tenants.audit_trail.recording import PLATFORM
from tenants.operators.facades import AuditRow
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tests.desk.test_cost import _watching
from tests.support.world import PASSWORD, Browser, World

READS = {"GetItem", "BatchGetItem", "Query", "DescribeTable", "DescribeTimeToLive", "ListTables"}
IDENTITY = "BatchGetItem"  # session and account, before any page


def trail(tenant_id: str = PLATFORM, *, of: str = "") -> list[AuditRow]:
    """The last fifty rows of a trail, newest first, or those of them whose action begins so."""
    return [row for row in AuditRow.objects.filter(tenant_id=tenant_id)[:50] if row.action.startswith(of)]


def make_operator(name: str = "Root") -> User:
    address, password_hash = f"{name.lower()}@example.com", make_password(PASSWORD)
    return accounts.seed(email=address, name=name, password_hash=password_hash, is_operator=True)


class Operator(Browser):
    """An operator's browser: it fills in the forms that it was shown."""

    @classmethod
    def signed_in(cls, email: str = "root@example.com") -> Operator:
        browser = cls()
        browser.sign_in(email)
        return browser

    def fill(self, path: str, shown: Any = None, **values: str) -> Any:
        """Send the form of a page, as `shown` before or as it is now, with these values in place of its own."""
        page = shown or self.get(path)
        form = page.context["adminform"].form
        fields = {name: form[name].value() for name in form.fields}
        return self.post(path, {n: "" if v is None else v for n, v in fields.items()} | values)

    def act(self, path: str, action: str, *, reason: str = "They asked for it.", follow: bool = False) -> Any:
        """Press the button of an action, on the page that asks first where there is one."""
        return self.post(path, {action: "1", "reason": reason, "confirmed": "1"}, follow=follow)

    def open(self, desk: str, *, reason: str = "They asked for help.") -> Operator:
        """Have the content of a desk shown, for a reason."""
        assert self.post("/admin/content-access/", {"tenant": desk, "reason": reason}).status_code == 302
        return self

    def says(self, path: str) -> str:
        """The page's text, on one line."""
        return text_of(self.get(path, follow=True))


def text_of(response: Any) -> str:
    page = response.content.decode().replace("<wbr>", "")
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


@contextmanager
def calls() -> Iterator[list[meter.Call]]:
    """The calls of the requests made inside, there when the block has ended."""
    found: list[meter.Call] = []
    with _watching() as bills:
        yield found
    found += [call for bill in bills for call in bill.calls]


def tenant_url(world: World, name: str, rest: str = "change/") -> str:
    return f"/admin/tenants/tenant/{world.tenants[name].tenant_id}/{rest}"


def user_url(world: World, name: str, rest: str = "change/") -> str:
    return f"/admin/tenants/account/{world.users[name].id}/{rest}"


def membership_url(world: World, who: str, where: str, rest: str = "change/") -> str:
    return f"/admin/tenants/membership/{world.tenants[where].tenant_id}_2F{world.users[who].id}/{rest}"
