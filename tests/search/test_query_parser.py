"""What is typed is understood; what is not is left out with a sentence, and nothing breaks it."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.errors import Invalid
from portal.web import locales
from tickets.search.search_query import ME, NOBODY, PHRASES_LIMIT, Phrase, parse
from tickets.ticket.fields import Priority, Status


def phrases(text: str) -> list[str]:
    """The phrases of a query as they could be typed."""
    return [
        f'"{p.text}"' if p.is_exact and not p.is_prefix else f"{p.text}*" if p.is_prefix else p.text
        for p in parse(text)[0].phrases
    ]


@pytest.mark.parametrize(
    ("text", "understood"),
    [
        ("printer smokes ", ["printer", "smokes"]),
        ("printer smokes", ["printer", "smokes*"]),
        ("printer sm", ["printer", "sm"]),
        ('printer "it smokes"', ["printer", '"it smokes"']),
        ("“it smokes”, «all day» ", ['"it smokes"', '"all day"']),
        ("foo(bar); baz! ", ["foo", "bar", "baz"]),
        ("joe.doe@example.com ", ["joe.doe@example.com"]),
        ("第3章の表", ["第3章の表"]),
        ("foo:bar ", ["foo:bar"]),
        ("see CVE-2014-01", ["see", "CVE-2014-01*"]),
        ("see CVE-2014-01 ", ["see", "CVE-2014-01"]),
        ("10.0", ["10.0*"]),
        ("1.2", ["1.2"]),
        ("prin* smokes ", ["prin*", "smokes"]),
        ("again again ", ["again"]),
        ("git push --force ", ["git", "push", "force"]),
        ("printer the", ["printer"]),
    ],
)
def test_words_and_phrases(text: str, understood: list[str]) -> None:
    assert phrases(text) == understood


def test_punctuation_is_no_word_and_needs_no_sentence() -> None:
    assert parse("salt & pepper - ## [x] ")[1] == ()


def test_a_word_by_itself_may_go_on_while_somebody_types() -> None:
    assert parse("the", is_typing=True)[0].phrases == (Phrase("the", is_prefix=True),)


def test_every_operator() -> None:
    query, explanations = parse(
        'bill -paid -"all of it" status:open,pending status:closed assignee:me from:"Carol Jones" tag:Money '
        "tag:late priority:HIGH after:2026-11-01 before:2027"
    )
    assert not explanations
    assert [p.text for p in query.phrases] == ["bill"]
    assert [p.text for p in query.without] == ["paid", "all of it"]
    assert query.statuses == (Status.OPEN, Status.PENDING, Status.CLOSED)
    assert (query.assignee, query.requester, query.tags) == (ME, "carol jones", ("money", "late"))
    assert (query.choices["priority"], query.after, query.before) == (
        Priority.HIGH,
        date(2026, 11, 1),
        date(2027, 1, 1),
    )
    assert {parse(f"x assignee:{word}")[0].assignee for word in ("nobody", "None", "unassigned")} == {NOBODY}


@pytest.mark.parametrize(("text", "number"), [("#12", 12), ("12", 12), ("12 x", None), ("#0", None), ("x #12", 12)])
def test_a_number_alone_or_with_a_mark_is_a_ticket(text: str, number: int | None) -> None:
    assert parse(text)[0].number == number


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("bill tag:", "“tag:” was ignored. Write behind tag: a tag."),
        ("bill status:lost", "“status:lost” was ignored. Write behind status: open, pending, resolved,"),
        ("bill priority:1", "“priority:1” was ignored"),
        ("bill before:2026-13-01", "Write behind before: a day as 2026-11-20."),
        ("bill after:yesterday", "“after:yesterday” was ignored"),
        ("bill -tag:x", "“-tag:x” was ignored: only words can be left out."),
        ('bill "unpaid', "A quotation mark was not closed"),
        ("bill 🙂", "“🙂” has no letter or digit"),
        ("the bill of a man ", "Left out, because nearly every ticket has it: “the”, “of”, “a”."),
        ("bill " * 1000, "Only the first 2,000 characters"),
        (
            "priority:high priority:low bill",
            "“priority:high” was ignored: of several priority: only the last one",
        ),
        ("assignee:me assignee:nobody bill", "“assignee:me” was ignored: of several assignee: only the last one"),
        ("from:me from:carol bill", "“from:me” was ignored: of several from: only the last one"),
        ("before:2026 before:2025 bill", "“before:2026” was ignored: of several before: only the last one"),
        (
            "is:open author:foo bill",
            "There is no filter “is:”, “author:”, so this was taken for a word. Filters are",
        ),
        ("bill OR invoice", "OR is not understood: tickets that have all of the words are found."),
        ("bill NOT invoice", "a minus right in front of a word"),
        ("b* invoice", "A star needs at least 3 letters in front of it: “b*”."),
        ("why was it removed", "Left out, as words of a question: “why”. In quotation marks they are searched for."),
        ("#236", "First ticket #236, then tickets whose texts have this number."),
        ("#236 bill", "#236 is the ticket of this number, if it fits the rest, or the number in a text."),
        (" ".join(f"word{n}" for n in range(99)), f"Only the first {PHRASES_LIMIT} words were searched for."),
        (f"bill {' '.join(f'-word{n}' for n in range(99))}", f"Only the first {PHRASES_LIMIT} words with a minus"),
    ],
)
def test_what_is_ignored_is_said(text: str, sentence: str) -> None:
    assert sentence in " ".join(parse(text)[1])


def test_a_limit_is_written_as_readers_of_the_page_write_numbers() -> None:
    with locales.in_language("de"):
        assert "2.000 Zeichen" in parse("bill " * 1000)[1][0]


@pytest.mark.parametrize("text", ["priority:low priority:LOW x", "tag:a tag:b x", "https://a.b x", "a:80 ", "Foo::x "])
def test_what_is_taken_as_it_was_typed_needs_no_sentence(text: str) -> None:
    assert parse(text)[1] == ()


def test_words_of_a_question_are_left_out_where_another_word_is_left() -> None:
    assert phrases("how does one print") == ["one", "print*"]
    assert phrases("why is it ") == ["why"]
    assert phrases('"how" print ') == ['"how"', "print"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Type a word"),
        ('"', "Type a word"),
        ('""', "Type a word"),
        ("\x00", "Type a word"),
        ("🙂", "has no letter or digit"),
        ("the", "nearly every ticket"),
        ('"to be or not to be"', "nearly every ticket"),
        ("-paid", "Say what to search for"),
        ("status:open", "Add a word"),
        ("tag:", "Write behind tag: a tag"),
    ],
)
def test_what_asks_nothing_is_told_so(text: str, sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence) as refused:
        parse(text)
    assert refused.value.field == "q"


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from('":-*# \x00\u202etagfrom')), max_size=60))
def test_whatever_is_typed_is_a_query_or_a_sentence(text: str) -> None:
    for is_typing in (False, True):
        try:
            query, explanations = parse(text, is_typing=is_typing)
        except Invalid as refused:
            explanations = (refused.message,)
        else:
            assert query.phrases or query.tags or query.requester or query.number
        assert all(sentence.endswith(".") for sentence in explanations)


@pytest.mark.parametrize("text", ["x" * 10_000, "word " * 1000, "שלום עולם", "\u202eabc", "é" * 3000, "-" * 500 + "x"])
def test_long_and_odd_texts_are_taken(text: str) -> None:
    assert parse(text)[0].phrases
