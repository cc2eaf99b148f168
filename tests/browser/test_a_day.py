"""An agent's day in clicks and keys: half of those of version 1.0, or fewer.

BEFORE was counted in the same browser with the same desk, along the shortest ways that version 1.0 had: each ticket by
itself for its priority, assignee and tags; answers typed out; two tickets merged, and a comment split off, by copying.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tenants.audit_trail.recording import SYSTEM
from tests.browser.conftest import NewPage
from tests.support import embedded
from tests.support.searching import index_all
from tests.support.world import PASSWORD, World
from tickets.desk import commenting
from tickets.ready_answers import answer_changes
from tickets.ready_answers.answer_reading import Given
from tickets.search import index_lookup

pytestmark = pytest.mark.browser

ANSWER = (
    "Thank you for writing to us. We have looked at your account and made the correction today, so the next invoice "
    "shows the right amount. Please tell us if anything still looks wrong."
)
BEFORE = {
    # clicks and keys, and characters of texts
    "sign in": (3, 37),
    "triage 20": (100, 0),
    "answer 10": (33, 1800),
    "tag 30": (93, 210),
    "merge 2": (22, 33),
    "split 1": (18, 43),
    "find 1": (4, 11),
}


class Hands:
    """Act on a page, and count: clicks and keys, and the characters of texts apart."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.acts: Counter[str] = Counter()
        self.typed: Counter[str] = Counter()
        self.task = ""

    def click(self, place: str | Locator, *, shift: bool = False) -> None:
        found = self.page.locator(place) if isinstance(place, str) else place
        found.click(modifiers=["Shift"] if shift else [])
        self.acts[self.task] += 1

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.acts[self.task] += 1

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)
        self.typed[self.task] += len(text)


@pytest.fixture
def world(engine: None) -> World:
    """45 open tickets of Acme's, a ready answer, and a comment that is worth a ticket of its own."""
    world = embedded.prepared("a-day-at-a-desk", busy_desk)
    index_lookup.forget()
    return world


def busy_desk() -> World:
    world = World.create()
    world.tickets("acme", 45)
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    answer_changes.create(alice, Given("Invoice corrected", "invoice", ANSWER), shared=True, by=SYSTEM)
    commenting.comment(bob, 45, body="And my printer prints the zebra in green.")
    index_all()
    return world


def opens(page: Page, number: int) -> None:
    """The page of a ticket is there, with its scripts."""
    expect(page.locator(f"#ticket[data-ticket='{number}']")).to_be_visible()
    page.wait_for_load_state()


def at_the_list(page: Page) -> None:
    expect(page.locator("#queue [data-row-link]").first).to_be_visible()
    page.wait_for_load_state()


def sign_in(hands: Hands, world: World) -> None:
    hands.click(hands.page.get_by_label("E-mail"))
    hands.type(world.users["bob"].email)
    hands.press("Tab")
    hands.type(PASSWORD)
    hands.press("Enter")
    at_the_list(hands.page)


def triage(hands: Hands) -> None:
    """Every other ticket is low and Bob's, the others are high and Alice's."""
    page = hands.page
    for first, priority, person in ((0, "l", "b"), (1, "h", "a")):
        for number in range(45 - first, 25, -2):
            hands.click(page.get_by_label(f"Select #{number}", exact=True))
        hands.click(page.get_by_role("button", name="Change fields…"))
        hands.click("label[for=id_priority]")
        hands.press(priority, "Tab")
        while page.evaluate("document.activeElement.name") != "resolver":
            hands.press("Tab")
        hands.press(person)
        hands.click(page.get_by_role("button", name="Change 10 tickets"))
        expect(page.locator("#messages")).to_contain_text("10 tickets")
        at_the_list(page)


def answer(hands: Hands) -> None:
    page = hands.page
    hands.press("j", "Enter")
    for done in range(10):
        expect(page.locator("#ticket")).to_be_visible()
        page.wait_for_load_state()
        number = int(page.locator("#ticket").get_attribute("data-ticket") or "")
        hands.press("r")
        hands.type(";inv")
        expect(page.get_by_role("option").filter(has_text="Invoice corrected")).to_be_visible()
        hands.press("Enter")
        expect(page.locator("#id_body")).to_have_value(ANSWER)
        hands.press("Control+Enter")
        expect(page.locator("#activity .prose").filter(has_text="made the correction")).to_be_visible()
        if done < 9:
            hands.press("j")
            expect(page.locator(f"#ticket:not([data-ticket='{number}'])")).to_be_visible()


def tag(hands: Hands) -> None:
    page = hands.page
    hands.press("g", "q")
    at_the_list(page)
    hands.click("[data-row] input[type=checkbox] >> nth=0")
    hands.click("[data-row] input[type=checkbox] >> nth=29", shift=True)
    hands.click(page.get_by_role("button", name="Change fields…"))
    hands.click("#id_add_tags")
    hands.type("billing")
    hands.press("Enter")
    expect(page.locator("#messages")).to_contain_text("30 tickets")


def merge(hands: Hands) -> None:
    """Ticket 12 belongs to 11."""
    page = hands.page
    hands.press("/")
    hands.type("#12")
    expect(page.locator("#suggested-ticket-12")).to_be_visible()
    hands.press("ArrowUp", "Enter")
    opens(page, 12)
    hands.press("m")
    expect(page.get_by_role("heading", level=1)).to_have_text("Merge ticket #12")
    page.wait_for_load_state()
    if not page.get_by_label("Into ticket").evaluate("box => box === document.activeElement"):
        hands.click(page.get_by_label("Into ticket"))
    hands.type("11")
    hands.press("Enter")
    expect(page.get_by_role("button", name="Merge #12 into #11")).to_be_visible()
    page.wait_for_load_state()
    hands.press("Enter")
    opens(page, 11)


def split(hands: Hands) -> None:
    page = hands.page
    hands.press("/")
    hands.type("#45")
    expect(page.locator("#suggested-ticket-45")).to_be_visible()
    hands.press("ArrowUp", "Enter")
    opens(page, 45)
    hands.click(page.get_by_role("link", name="Split off").first)
    expect(page.get_by_role("button", name="Create the ticket")).to_be_visible()
    hands.click(page.get_by_role("button", name="Create the ticket"))
    opens(page, 46)


def find(hands: Hands) -> None:
    page = hands.page
    hands.press("/")
    hands.type("zebra green")
    hands.press("Enter")
    expect(page.locator("#results [data-row-link]").first).to_be_visible()
    page.wait_for_load_state()
    hands.press("j", "Enter")
    expect(page.locator("#ticket")).to_be_visible()


def test_a_day_takes_at_most_half_the_clicks_and_keys_that_it_took(world: World, browse: NewPage) -> None:
    page = browse()
    page.goto("/login/")
    hands = Hands(page)
    tasks: dict[str, Callable[[], None]] = {
        "sign in": lambda: sign_in(hands, world),
        "triage 20": lambda: triage(hands),
        "answer 10": lambda: answer(hands),
        "tag 30": lambda: tag(hands),
        "merge 2": lambda: merge(hands),
        "split 1": lambda: split(hands),
        "find 1": lambda: find(hands),
    }
    assert tasks.keys() == BEFORE.keys()
    for hands.task, do in tasks.items():
        do()
    after = {task: (hands.acts[task], hands.typed[task]) for task in tasks}
    acts, typed = (sum(counts) for counts in zip(*after.values(), strict=True))
    acts_before, typed_before = (sum(counts) for counts in zip(*BEFORE.values(), strict=True))
    assert acts <= acts_before / 2, after
    assert typed <= typed_before / 2, after
