"""The cache of rendered texts is bounded by bytes, not by their number."""

from __future__ import annotations

import sys

from portal.web.text_cache import TextCache


def test_long_texts_push_out_what_was_not_asked_for_longest() -> None:
    page = "x" * 1000
    cache = TextCache(4 * (sys.getsizeof("a") + sys.getsizeof(page)))
    for key in "abcd":
        cache.put(key, page)
    cache.get("a")
    cache.put("e", page)
    assert [key for key in "abcde" if cache.get(key)] == ["a", "c", "d", "e"]
    assert cache.size <= cache.limit


def test_a_text_beyond_the_bound_is_not_kept() -> None:
    cache = TextCache(1000)
    cache.put("a", "x" * 1000)
    assert (cache.get("a"), cache.size) == (None, 0)


def test_the_same_text_counts_once() -> None:
    cache = TextCache(10_000)
    for _ in range(3):
        cache.put("a", "x")
    assert cache.size == sys.getsizeof("a") + sys.getsizeof("x")
