"""Every word that a ticket says finds it, in whatever script and form it is written."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.search.desk_in_memory import MemoryDesk
from tickets.search import suggesting, ticket_search, tokenizer


def found(desk: MemoryDesk, text: str) -> list[int]:
    return [int(hit.summary.number) for hit in ticket_search.find(desk.agent, text).hits]


_ODD = "½⅓⑴⒈㈠²ⅧﬁﷺŉǆſßẞİıøŁæœёЙάᾳΐกำุ่ำน้ລັກ가나각ｶﾞﾊﾟガ東京हिन्दीשָׁكَلِمَةـ\u0301\u0316\u00ad\u200d\u3099\u0e33'’-./@:_ aAbBxX12é"
_TEXTS = st.text(st.sampled_from(_ODD) | st.characters(exclude_categories=["Cs", "Cc"]), max_size=16)


@given(_TEXTS)
def test_any_text_is_found_by_each_of_its_words(text: str) -> None:
    desk = MemoryDesk()
    desk.ticket("Printer", text)
    words = {text[word.start : word.end] for word in tokenizer.words(text)}
    words = {word for word in words if not tokenizer.is_function_word(tokenizer.words(word)[0].folded[0])}
    assert {word for word in words if found(desk, f'"{word}"') != [1]} == set()


def test_a_quick_look_never_misses_a_letter_or_digit() -> None:
    missed = []
    for char in map(chr, range(0x80, sys.maxunicode)):
        if char.isalnum() and (unicodedata.decomposition(char) or char != char.casefold()):
            bare = tokenizer.bare(f"a {char}{char} b")
            missed += [char for word in tokenizer.words(char * 2) if tokenizer.bare(word.folded[0]) not in bare]
    assert missed == []


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("프린터가 고장났습니다 한국어 테스트", "프린터가 고장났습니다"),
        ("打印机 错误 严重", "打印机 错误"),
        ("muller 프린터가 works", "muller 프린터가"),
        ("muller 프린터가 works", "프린터가 works"),
        ("เครื่องพิมพ์ ไม่ทำงาน", "เครื่องพิมพ์ ไม่ทำงาน"),
        ("가 나 다", "나 다"),
        *((f"Take {word} of it", f"{word} of") for word in ("½", "1½", "⑴⑵", "⒈⒉", "ﷺ", "Ⅷ", "㎏2²")),
    ],
)
def test_a_phrase_of_words_with_spaces_is_found_where_words_need_none(text: str, phrase: str) -> None:
    desk = MemoryDesk()
    number = desk.ticket(text)
    desk.ticket(" ".join(reversed(text.split())))
    assert found(desk, f'"{phrase}"') == [number]


@pytest.mark.parametrize(
    ("text", "beginnings"),
    [
        ("हिन्दी में प्रिंटर काम नहीं कर रहा है", ("हिन्", "हिन्दी", "प्रिं", "प्रिंट")),
        ("العَرَبِيَّة لا تعمل", ("العَرَ", "العرب", "العَرَبِ")),
        ("המדפסת שָׁלוֹם", ("שָׁלוֹ", "המדפ")),
        ("เครื่องพิมพ์ไม่ทำงาน", ("เครื่", "เครื่อ", "ไม่ทำ")),
        ("re\u0301sume\u0301s", ("re\u0301sume\u0301", "re\u0301s")),
        ("می\u200cخواهم", ("می\u200cخ", "می\u200cخوا")),
    ],
)
def test_a_beginning_may_end_in_a_mark(text: str, beginnings: tuple[str, ...]) -> None:
    desk = MemoryDesk()
    number = desk.ticket(text)
    assert [beginning for beginning in beginnings if found(desk, beginning) != [number]] == []
    offered = {beginning: suggesting.suggest(desk.agent, beginning).tickets for beginning in beginnings}
    assert [beginning for beginning, tickets in offered.items() if [t.number for t in tickets] != [number]] == []


# --- forms ---


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


@pytest.mark.parametrize(
    "word", ["tls13", "is", "server", "resumption", "run", "classes", "bus", "verschlusselung", "versions"]
)
def test_what_forms_begin_with_is_short_enough_for_all_and_no_shorter(word: str) -> None:
    for other in (word, *tokenizer.stems(word).values()):
        assert other.startswith(tuple(tokenizer.beginnings(word)))
    assert all(len(beginning) >= tokenizer.LEAST or beginning == word for beginning in tokenizer.beginnings(word))
    assert tokenizer.stems(word) or tokenizer.beginnings(word) == [word]


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
