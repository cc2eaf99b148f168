"""Checklists in descriptions and comments: items are ticked by a form, and of two ticks at once none is lost."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from tests.support.world import Browser, World
from tickets.checklists import ticking
from tickets.desk import changing, commenting, creating, timelines
from tickets.ticket import checklists
from tickets.ticket.checklists import Tick

LIST = """To do:

- [ ] Call **Bob**
- [x] Fix it
  1. [ ] inside

```
- [ ] code
```
- no item [ ] here"""


@pytest.fixture
def desk(world: World) -> World:
    creating.create(world.context("bob", "acme"), title="A list", description=LIST)
    return world


def boxes(browser: Browser) -> list[tuple[str, str, str]]:
    """Value, state and words of each box on the ticket's page."""
    page = browser.get("/tickets/1/").content.decode()
    found = re.findall(r'name="tick" value="([^"]+)" role="checkbox" aria-checked="(\w+)" aria-label="([^"]*)"', page)
    return [(value, state, unescape(words)) for value, state, words in found]


def tick(browser: Browser, value: str) -> Any:
    return browser.send("/tickets/1/tick/", {"tick": value})


def description(world: World) -> str:
    return timelines.head(world.context("alice", "acme"), 1)[1]


def test_an_item_is_ticked_and_unticked_by_a_form_and_the_history_says_so(desk: World) -> None:
    bob = desk.browser("bob")
    assert [(state, words) for _, state, words in boxes(bob)] == [
        ("false", "Call **Bob**"), ("true", "Fix it"), ("false", "inside")
    ]  # fmt: skip
    assert bob.get("/tickets/1/").content.decode().count('<li class="task"><button class="tick"') == 3
    assert tick(bob, boxes(bob)[0][0]).status_code == 302
    assert description(desk) == LIST.replace("[ ] Call", "[x] Call")
    tick(bob, boxes(bob)[1][0])
    tick(bob, boxes(bob)[2][0])
    assert [state for _, state, _ in boxes(bob)] == ["true", "false", "true"]
    verbs = [entry.verb for entry in timelines.ticket(desk.context("bob", "acme"), 1).activity if entry.changes]
    assert verbs == ["ticked “Call **Bob**”:", "unticked “Fix it”:", "ticked “inside”:"]


def test_a_tick_that_is_sent_twice_changes_nothing_the_second_time(desk: World) -> None:
    bob = desk.browser("bob")
    value = boxes(bob)[0][0]
    tick(bob, value)
    tick(bob, value)
    assert changing.read(desk.context("bob", "acme"), 1).version == 2


def test_of_two_who_tick_at_once_none_loses_anything(desk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (one[0] for one in boxes(desk.browser("bob"))[:2])
    alice, real, meanwhile = desk.context("alice", "acme"), changing.read_description, [second]

    def read(*args: Any) -> str:
        found = real(*args)
        if meanwhile:
            ticking.tick(alice, 1, Tick.parse(meanwhile.pop()))
        return found

    monkeypatch.setattr(changing, "read_description", read)
    assert tick(desk.browser("bob"), first).status_code == 302
    assert "[x] Call" in description(desk)
    assert "[ ] Fix it" in description(desk)


def test_an_item_that_moved_is_found_by_its_words_and_one_that_is_gone_is_told(desk: World) -> None:
    bob = desk.browser("bob")
    value = boxes(bob)[0][0]
    changing.edit(desk.context("alice", "acme"), 1, version=1, description=f"- [ ] first\n{LIST}")
    tick(bob, value)
    assert "- [ ] first" in description(desk)
    assert "[x] Call" in description(desk)
    changing.edit(desk.context("alice", "acme"), 1, version=3, description="- [ ] other")
    tick(bob, value)
    assert "was changed or removed meanwhile" in unescape(bob.get("/tickets/1/").content.decode())
    assert description(desk) == "- [ ] other"


def test_each_agent_ticks_items_of_a_comment_which_keeps_its_earlier_text(desk: World) -> None:
    commenting.comment(desk.context("alice", "acme"), 1, body="* [ ] in a comment")
    bob = desk.browser("bob")
    value = boxes(bob)[-1][0]
    assert tick(bob, value).status_code == 302
    entry = timelines.ticket(desk.context("bob", "acme"), 1).activity[-1]
    assert entry.body == "* [x] in a comment"
    assert [text.body for text in entry.former_texts or ()] == ["* [ ] in a comment"]


@pytest.mark.parametrize("value", ["", "x", "0.00000000.2", "0.zz.1", "99999999.00000000.1"])
def test_a_tick_that_is_none_is_refused(desk: World, value: str) -> None:
    assert tick(desk.browser("bob"), value).status_code == 400


def test_viewers_see_the_boxes_and_tick_nothing(desk: World) -> None:
    vera, value = desk.browser("vera"), boxes(desk.browser("bob"))[0][0]
    assert boxes(vera) == []
    assert vera.get("/tickets/1/").content.decode().count('role="img" aria-label="Not done:"') == 2
    assert tick(vera, value).status_code == 403


def test_a_text_cannot_make_boxes_or_tags_of_its_own() -> None:
    text = "- [ ] \ue0000\ue001 <b onclick=1>\n- \ue0000\ue001 \ue0009\ue001"
    assert [one.place for one in checklists.items(text)] == [0]
    assert Tick.parse(checklists.items(text)[0].value).applied(text).startswith("- [x] ")
