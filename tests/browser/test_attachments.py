"""Files in a browser: chosen, dropped and pasted, sent to the bucket while somebody writes, and downloaded from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.attachments import pictures
from tests.browser import page_audit
from tests.browser.conftest import NewPage, sign_in
from tests.support import mailing
from tests.support.world import World
from tickets.desk import creating
from tickets.requesters import requesters

pytestmark = pytest.mark.browser

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f64540"
    "0000000049454e44ae426082"
)
# Gives the element a file as an event that a person's hand would make.
BRING = """([selector, kind, name, type]) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array([1, 2, 3])], name, { type }));
    const init = { bubbles: true, cancelable: true };
    const event = kind === "paste" ? new ClipboardEvent("paste", { ...init, clipboardData: data })
        : new DragEvent(kind, { ...init, dataTransfer: data });
    document.querySelector(selector).dispatchEvent(event);
}"""


@pytest.fixture
def page(world: World, browse: NewPage) -> Page:
    world.tickets("acme", 1)
    page = browse()
    sign_in(page, "bob@example.com")
    page.goto(f"{page.url.split('/tickets')[0]}/tickets/1/")
    return page


def test_files_are_chosen_dropped_and_pasted_and_belong_to_the_comment(page: Page) -> None:
    page.get_by_label("Comment", exact=True).fill("Three files.")
    page.locator("input[type=file]").set_input_files(
        {"name": "report.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7"}
    )
    page.evaluate(BRING, ["#reply", "drop", "dropped.bin", "application/octet-stream"])
    page.evaluate(BRING, ["#reply textarea", "paste", "image.png", "image/png"])
    attached = page.locator("#reply .file")
    expect(attached.filter(has_text="attached")).to_have_count(3)
    expect(attached.nth(2)).to_contain_text("screenshot")
    attached.nth(1).get_by_role("button", name="Remove dropped.bin").click()
    expect(attached).to_have_count(2)
    page.get_by_role("button", name="Comment", exact=True).click()
    files = page.get_by_role("article", name="Comment by Bob Example").locator(".file")
    expect(files).to_have_count(2)
    expect(files.first).to_contain_text("report.pdf")
    expect(page.locator("#reply .file")).to_have_count(0)


def test_a_file_is_downloaded_and_never_shown(page: Page, tmp_path: Path) -> None:
    page.locator("input[type=file]").set_input_files(
        {
            "name": "page.html",
            "mimeType": "text/html",
            "buffer": b"<!doctype html><script>document.title='run'</script>",
        }
    )
    page.get_by_role("button", name="Comment", exact=True).click()
    link = page.get_by_role("link", name="page.html")
    with page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename == "page.html"
    with page.expect_download() as download:
        page.get_by_role("button", name="Download all files").click()
    assert download.value.suggested_filename == "ticket-1-files.zip"


def test_a_form_waits_for_its_files(page: Page) -> None:
    page.route("**/pooldesk-mail", lambda route: (page.wait_for_timeout(300), route.continue_()))
    page.get_by_label("Comment", exact=True).fill("Sent at once.")
    page.locator("input[type=file]").set_input_files({"name": "slow.png", "mimeType": "image/png", "buffer": PNG})
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.get_by_role("article", name="Comment by Bob Example").locator(".file")).to_have_count(1)


def test_a_file_that_is_too_large_is_named_and_not_sent(page: Page) -> None:
    page.evaluate("document.querySelector('[data-files]').dataset.mostBytes = '2'")
    page.locator("input[type=file]").set_input_files({"name": "big.bin", "mimeType": "text/plain", "buffer": b"123"})
    expect(page.locator("#reply .file")).to_contain_text("is larger than")
    expect(page.locator("#reply input[name=files]")).to_have_count(0)


def test_files_that_are_too_much_for_a_letter_are_warned_of_until_one_is_removed(world: World, page: Page) -> None:
    bob = world.context("bob", "acme")
    number = creating.create(bob, title="It stops", requester=requesters.ensure(bob, "ada@example.org"))
    page.goto(page.url.replace("/tickets/1/", f"/tickets/{number}/"))
    page.evaluate("document.querySelector('[data-files]').dataset.mailBytes = '5'")
    warning, attached = page.locator("[data-mail-warning]"), page.locator("#reply .file")
    for count, name in enumerate(("one.bin", "two.bin"), start=1):
        page.evaluate(BRING, ["#reply", "drop", name, "application/octet-stream"])
        expect(attached.filter(has_text="· attached")).to_have_count(count)
        expect(warning).to_be_visible(visible=count == 2)
    page.get_by_label("Internal note").check()
    expect(warning).to_be_hidden()
    page.get_by_label("Internal note").uncheck()
    page.get_by_role("button", name="Remove two.bin").click()
    expect(warning).to_be_hidden()


def test_a_page_with_files_is_accessible(page: Page) -> None:
    page.locator("input[type=file]").set_input_files(
        {"name": f"a name that is {'very ' * 20}long.png", "mimeType": "image/png", "buffer": PNG}
    )
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator(".entry .file")).to_have_count(1)
    page.locator("input[type=file]").set_input_files({"name": "next.png", "mimeType": "image/png", "buffer": PNG})
    expect(page.locator("#reply .file")).to_contain_text("attached")
    assert page_audit.audit_all(page, "a ticket with files") == []


def test_a_picture_is_shown_small_and_leads_to_its_file(page: Page) -> None:
    page.locator("input[type=file]").set_input_files(
        [
            {"name": "wide.png", "mimeType": "image/png", "buffer": pictures.encoded("PNG", 1600, 900)},
            {"name": "broken.png", "mimeType": "image/png", "buffer": pictures.encoded("PNG", 1600, 900)[:300]},
        ]
    )
    expect(page.locator("#reply .file").filter(has_text="attached")).to_have_count(2)
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.get_by_role("article", name="Comment by Bob Example").locator(".file")).to_have_count(2)
    mailing.carry()
    page.reload()
    picture = page.locator(".file-preview img")
    expect(picture).to_have_count(1)
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("naturalWidth", 400)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert picture.evaluate("one => one.getBoundingClientRect().right <= innerWidth")
    assert page_audit.audit_all(page, "a ticket with previews") == []
