"""Pages show no word that is not translated: an owner and a visitor see all of them in a language made by machine."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from django.test import Client

from tests.isolation.test_outsider import ROUTES, SECRET, acme, filled  # noqa: F401
from tests.support import pseudo_language
from tests.support.world import World

# Routes whose pages are not translated yet, and "frame" for what stands around each page. It only shrinks:
# WRITE_DOCS=1 removes those that are.
LEFT = Path(__file__).with_name("pages_left_in_english.txt")
# The values that these pages show, and names that are the same in every language.
DATA = re.compile(
    rf"(?i)\S+@\S+|\S+/\S+|{SECRET}(\.txt)?|\d+ (MB|Nov|[ap]m)\b"
    r"|\b(sk_live\S+|\w+:\w+|Acme|Globex|(Alice|Bob|Vera|Charlie|Root)( Example)?|[ABV]E|Hours|Billing|Pooldesk|UTC"
    r"|English|Deutsch|[KM]B|txt)\b"
)
ENGLISH_ROUTES = ("api/",)


def pages(world: World, headers: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the pages that there are, by route."""
    people = (world.browser("alice", "acme"), Client())
    for route, _ in ROUTES:
        for browser in people if not route.startswith(("<slug:desk>", *ENGLISH_ROUTES)) else people[:1]:
            asked = f"{filled(route)}?lang={pseudo_language.LEFT_TO_RIGHT}"
            answer = browser.get(asked, **headers)  # type: ignore[arg-type]
            if "text/html" in answer.headers.get("Content-Type", ""):
                yield route, answer.content.decode()


def test_no_page_shows_a_word_that_is_not_translated(acme: World) -> None:  # noqa: F811
    found: dict[str, list[str]] = defaultdict(list)
    with pseudo_language.spoken() as headers:
        for route, page in pages(acme, headers):
            main, frame = pseudo_language.unmarked(page, DATA)
            found[route] += main
            found["frame"] += [words for words in frame if words not in found["frame"]]
    left = LEFT.read_text().split("\n") if LEFT.exists() else []
    assert {route: words for route, words in found.items() if words and route not in left} == {}
    if os.environ.get("WRITE_DOCS"):
        LEFT.write_text("\n".join(route for route in left if found[route]))
