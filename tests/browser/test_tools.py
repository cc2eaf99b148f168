"""The other tests of this folder rest on a witness and an audit that must not be blind."""

from __future__ import annotations

import pytest

from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser


def test_the_audit_finds_bad_colours_missing_names_and_overflow(browse: NewPage) -> None:
    page = browse()
    page.set_content("""<!doctype html><html lang="en"><title>Bad</title><meta name="color-scheme" content="light dark">
        <style>p { color: #999; background: #aaa } @media (prefers-color-scheme: dark) { p { color: #000 } }
        div { width: 500px }</style><main><h1>Bad</h1><p>Pale</p><input><div>Wide</div></main></html>""")
    found = "\n".join(audit(page, "bad"))
    for line in (
        "light, 1280: color-contrast", "light, 1280: label", "dark, 390: label", "dark, 390: wider than the window",
    ):  # fmt: skip
        assert f"bad, {line}" in found
    assert "dark, 1280: color-contrast" not in found
    assert "1280: wider than" not in found


def test_the_witness_sees_what_does_not_show(browse: NewPage, witness: Witness) -> None:
    page = browse()
    page.goto("/login/")
    for script, line in (
        ("document.body.append(Object.assign(document.createElement('script'), {textContent: '1'}))", "inline script"),
        ("document.body.setAttribute('style', 'color: red')", "inline style"),
        ("fetch('http://localhost:9/').catch(() => 0)", "connect"),
        ("console.error('broken')", "console: broken"),
        ("setTimeout(() => { throw new Error('thrown') })", "uncaught: "),
        ("fetch('/static/nothing')", "404 for GET"),
        ("setTimeout(() => { location.href = 'http://localhost:9/' })", "another origin: http://localhost:9/"),
    ):
        witness.problems.clear()
        page.evaluate(script)
        wait_until(lambda line=line: line in "\n".join(witness.problems), working=lambda: page.wait_for_timeout(50))
    page.close()
    witness.problems.clear()
