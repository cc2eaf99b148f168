"""Words are told to be forms of one, and the range that is asked of the index holds all of them."""

from __future__ import annotations

import pytest

from tests.search.desk_in_memory import MemoryDesk
from tickets.search import ticket_search, tokenizer


@pytest.mark.parametrize(
    "forms",
    [
        ("encrypt", "encrypted", "encrypting", "encryption"),
        ("possible", "possibility", "possibly"),
        ("pony", "ponies"),
        ("try", "tries", "trying", "tried"),
        ("use", "used", "using", "uses"),
        ("rechnung", "rechnungen"),
        ("haus", "hauser", "hauses"),
        ("facture", "factures"),
        ("ошибка", "ошибки", "ошибкой"),
    ],
)
def test_each_form_finds_every_other_one(forms: tuple[str, ...]) -> None:
    desk = MemoryDesk()
    numbers = {desk.ticket(form) for form in forms}
    desk.ticket("anything else")
    for form in forms:
        hits = ticket_search.find(desk.agent, f"{form} ").hits
        assert {int(hit.summary.number) for hit in hits} == numbers, form
        assert hits[0].summary.title == form


def test_words_with_digits_and_short_ones_have_no_other_forms() -> None:
    assert tokenizer.beginnings("tls13") == ["tls13"]
    assert tokenizer.beginnings("is") == ["is"]


@pytest.mark.parametrize("word", ["server", "resumption", "run", "classes", "bus", "verschlusselung", "versions"])
def test_what_forms_begin_with_is_short_enough_for_all_and_no_shorter(word: str) -> None:
    for other in (word, *tokenizer.stems(word).values()):
        assert other.startswith(tuple(tokenizer.beginnings(word)))
    assert all(len(beginning) >= tokenizer.LEAST for beginning in tokenizer.beginnings(word))


def test_a_quick_look_at_a_text_never_misses_what_is_in_it() -> None:
    for text in (
        "Straße ÉCOLE ﬁne ǅ İstanbul",
        "ёлка Й Πώς ΑΣ",
        "ｶﾞｽ 한국어 שָׁלוֹם كَلِمَة",
        "don’t re\u00adport cafe\u0301",
    ):
        bare = tokenizer.bare(tokenizer.without_symbols(text))
        words = [word.folded[0] for word in tokenizer.words(text)]
        assert words
        assert [word for word in words if tokenizer.bare(word) not in bare] == []
