"""The other tests of this folder rest on a witness and an audit that must not be blind."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import NewPage, Profiles, Witness
from tests.browser.page_audit import NARROW, audit, grave
from tests.browser.portal_process import Portal
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser


def test_the_audit_finds_bad_colours_missing_names_and_overflow(browse: NewPage) -> None:
    page = browse()
    page.set_content("""<!doctype html><html lang="en"><title>Bad</title><meta name="color-scheme" content="light dark">
        <style>p { color: #999; background: #aaa } @media (prefers-color-scheme: dark) { p { color: #000 } }
        div { width: 500px } @media (width > 500px) { button { display: none } button + button { display: block } }
        </style><main><h1>Bad</h1><p>Pale</p><input><div>Wide</div><button></button>
        <button><span>Named</span></button></main></html>""")
    found = "\n".join(audit(page, "bad"))
    for line in (
        "light, 1280: color-contrast", "light, 1280: label",
        "dark, 390: button-name", "dark, 390: wider than the window",
    ):  # fmt: skip
        assert f"bad, {line}" in found
    assert "dark, 1280: color-contrast" not in found
    assert "1280: wider than" not in found
    assert "1280: button-name" not in found


def test_the_audit_asks_again_where_one_thing_is_other_than_on_a_page_without_a_fault(browse: NewPage) -> None:
    page = browse()

    def found(style: str, names: str = 'aria-label="Name"') -> str:
        page.set_content(f"""<!doctype html><html lang="en"><title>A page</title>
            <style>p {{ color: #000 }} {style}</style>
            <main><h1>Same</h1><i></i><div><p>A text like the other</p></div><input {names}></main></html>""")
        return "\n".join(audit(page, "same"))

    assert not found("")
    under = "i { position: absolute; inset: 0; background: #222 } div { position: relative }"
    for style in ("p { color: #ccc }", "div { background: #222 }", "div { opacity: 0.3 }", under):
        for _ in range(2):  # what had a fault is never taken for asked
            assert "color-contrast" in found(style), style
    assert not found("p { color: #ccc; font-size: 30px; font-weight: bold; background: #222 }")
    assert "color-contrast" in found("p { color: #777; font-size: 12px; background: #ccc }")
    assert "label" in found("", names="")
    assert not found("")


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("link-name", '<a href="/">Go</a>', '<a href="/"><i></i></a>'),
        ("list", "<ul><li>One</li></ul>", "<ul><div>One</div></ul>"),
        ("listitem", "<ul><li>One</li></ul>", "<div><li>One</li></div>"),
        ("label", '<input aria-labelledby="name"><b id="name">Name</b>', '<input aria-labelledby="name"><b id="name">'),
        ("label", '<label for="box">Name</label><input id="box">', '<label for="bax">Name</label><input id="box">'),
        ("label", "<label>Name<input></label>", "<div>Name<input></div>"),
        ("image-alt", '<img src="data:," alt="Seal">', '<img src="data:,">'),
        ("nested-interactive", "<button>Go <b>on</b></button>", '<button>Go <a href="/">on</a></button>'),
        ("aria-hidden-focus", '<i aria-hidden="true"><b>Go</b></i>', '<i aria-hidden="true"><a href="/">Go</a></i>'),
        ("aria-required-parent", '<p role="tablist"><b role="tab">A</b></p>', '<p><b role="tab">A</b></p>'),
        ("valid-lang", '<p lang="de">Guten Tag</p>', '<p lang="xx-nowhere">Guten Tag</p>'),
    ],
)
def test_the_audit_finds_what_is_wrong_beside_what_it_has_found_right(
    browse: NewPage, good: str, bad: str, rule: str
) -> None:
    page = browse()
    around = '<!doctype html><html lang="en"><title>A page</title><main><h1>Same</h1>'
    for part, is_right in ((good, True), (bad, False), (bad, False), (good, True)):
        page.set_content(f"{around}{part}</main></html>")
        found = "\n".join(grave(page, "same"))
        assert (not found) if is_right else (f"same: {rule}" in found), part


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


def test_a_browser_that_is_used_again_has_forgotten_everything(chromium: Browser, portal: Portal) -> None:
    profiles = Profiles(chromium)
    knows = """() => [localStorage.a, sessionStorage.a, document.cookie.includes("a=b"), navigator.onLine, innerWidth,
      matchMedia("(prefers-color-scheme: dark)").matches, matchMedia("print").matches, !document.querySelector("h1")]"""
    page = profiles.take(portal.url)
    page.goto("/login/")
    new = page.evaluate(knows)
    page.evaluate("() => { document.cookie = 'a=b'; localStorage.a = sessionStorage.a = 'b' }")
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    page.route("**/login/", lambda route: route.fulfill(body="<p>Nothing"))
    tab = page.context.new_page()
    tab.goto("/login/")
    page.goto("/login/")
    page.context.set_offline(True)
    assert page.evaluate(knows) == ["b", "b", True, False, 390, True, True, True]
    profiles.give_back(portal.url, page)

    assert profiles.take(portal.url) is page
    assert page.context.pages == [page]
    page.goto("/login/")
    assert page.evaluate(knows) == new == [None, None, False, True, 1280, False, False, False]

    page.clock.set_fixed_time(0)
    profiles.give_back(portal.url, page)
    other = profiles.take(portal.url)
    assert other is not page
    other.context.close()
