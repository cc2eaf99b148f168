"""What is typed finds the tickets that it should, marked, and no other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pytest

from portal.dynamo import meter
from portal.dynamo.paging import BadCursor
from portal.errors import Invalid
from tests.search.desk_in_memory import ALICE, BOB, MemoryDesk
from tickets.desk.filters import TicketFilter
from tickets.search import index_lookup, search_query, suggesting, ticket_search
from tickets.search.index import postings
from tickets.search.results import Piece, Where
from tickets.search.search_query import Filters
from tickets.ticket.fields import Status
from tickets.ticket.stored import TICKETS


@pytest.fixture
def desk() -> MemoryDesk:
    return MemoryDesk()


def found(desk: MemoryDesk, text: str, **how: Any) -> list[int]:
    return [int(hit.summary.number) for hit in ticket_search.find(desk.agent, text, **how).hits]


def all_found(desk: MemoryDesk, text: str, **how: Any) -> list[int]:
    """The numbers of all pages. Each page but the last one leads on."""
    page = ticket_search.find(desk.agent, text, **how)
    numbers = [int(hit.summary.number) for hit in page.hits]
    while page.further:
        page = ticket_search.find(desk.agent, text, further=page.further, **how)
        numbers += [int(hit.summary.number) for hit in page.hits]
    return numbers


def marked(pieces: Sequence[Piece]) -> str:
    return "".join(f"[{piece.text}]" if piece.is_match else piece.text for piece in pieces)


def fill(desk: MemoryDesk, many: int, title: str, wanted: Collection[int] = (), **values: Any) -> None:
    """Write tickets with the same word in one segment, those that are wanted with these values."""
    for number in range(1, many + 1):
        desk.ticket(title.format(number), index=False, **(values if number in wanted else {}))
    desk.index_as_segment(range(1, many + 1))


# --- words ---

PHRASES = [
    "To be or not to be printed",
    "Not printed, to be or to be",
    "Or so it is: not, to be honest, printed at all",
]
HUMPS = ["HelloRetryRequest", "Hello, Retry Request", "Say hello retryAgain"]
LEFT_OUT = ["Printer one", {"title": "Printer two", "comments": ["It smokes"]}, ("Printer three", "by a smoking man")]
BILLS = ["About invoice 2", "The invoice", "Invoice 4.2"]
WORDS: dict[str, tuple[list[Any], dict[str, Iterable[int]]]] = {
    "all words must be there wherever they stand": (
        [{"title": "The printer smokes", "description": "In it.", "comments": ["Burning."]}, "The printer is slow"],
        {"printer burning": [1]},
    ),
    "other forms are found behind words that are spelt so": (
        ["It failed here", "It fails here", "It is failing here", "A faille dress"],
        {"failed ": [1, 2, 3]},
    ),
    "of the last word the beginning is enough while it may go on, and of one with a star": (
        ["Invoices are late"],
        {"late invo": [1], "invo late": [], "late invo ": [], "invo* late": [1]},
    ),
    "quotation marks ask for words as they are spelt and stand": (
        [*PHRASES, "It prints"],
        {'"or not to be printed"': [1], '"prints"': [4]},
    ),
    "words in quotation marks are none inside of other words": (
        HUMPS,
        {
            "retry": [1, 2, 3], '"retry"': [2], '"hello retry"': [2], 'hello -"retry"': [1, 3],
            '"HelloRetryRequest"': [1],
        },
    ),
    "a phrase does not go from one text to the next": (
        [{"title": "The red", "description": "fox jumps", "comments": ["over the lazy", "dog"]}],
        {'"red fox"': [], '"lazy dog"': [], '"fox jumps"': [1]},
    ),
    "a phrase is found over line ends and markdown": (
        [("A", "some **very**\n> large\tbill")],
        {'"some very large bill"': [1]},
    ),
    "a word can be left out": (LEFT_OUT, {"printer -smoking": [1], 'printer -"smoking man"': [1, 2]}),
    "a number with its mark is no beginning of another": (["Picture 23642032"], {"#236": []}),
    "a number finds its ticket and what mentions it": (["See #2", "The second"], {"#2": [1, 2], "2": [1, 2]}),
    "a number beside words is the ticket that has these or a number in a text": (
        BILLS,
        {
            "#2 invoice": [1, 2, 3], "invoice #2": [1, 2, 3], "#2 -invoice": [], "#2 paper": [],
            "#2 invoice status:closed": [],
        },
    ),
    "marks that make another letter make another word": (["Мой дом"], {'"мои"': []}),
    "tags and requesters are found without a word": (
        [{"title": "One", "tags": ["money"], "requester": ALICE}, {"title": "Money", "requester_name": "Alice"}],
        {"tag:money": [1], "from:me": [1]},
    ),
    "a comment behind a hundred others is found": (
        [{"title": "A", "comments": ["It whistles", *["Again"] * 250]}],
        {"whistles": [1], "again -whistles": []},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WORDS)
def test_words_find_tickets(desk: MemoryDesk, case: str) -> None:
    tickets, queries = WORDS[case]
    for one in tickets:
        desk.ticket(**one) if isinstance(one, dict) else desk.ticket(*([one] if isinstance(one, str) else one))
    assert {query: sorted(found(desk, query)) for query in queries} == queries


@pytest.mark.parametrize(
    ("tickets", "query", "first"),
    [
        (["It fails here", "It failed here"], "failed ", 2),
        ([f"Update to 10.1{end}" for end in ("1", "", "2", "3")], "10.1", 2),
        (["See #2", "The second"], "2", 2),
        (["See #2", "The second"], "#2", 2),
        (BILLS, "invoice #2", 2),
    ],
)
def test_what_is_meant_most_comes_first(desk: MemoryDesk, tickets: list[str], query: str, first: int) -> None:
    for title in tickets:
        desk.ticket(title)
    assert found(desk, query)[0] == first


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("joe.doe@example.com", ("joe", "doe", "example.com", "joe.doe@example.com")),
        ("CVE-2014-0160", ("cve-2014-0160", "2014-0160", "0160")),
        ("https://host.example.org/a/b?q=77", ("host.example.org", "example", "q=77", "https://host.example.org/a/b?q=77")),
        ("at com.acme.Foo$Bar.baz(Foo.java:123)", ("Foo.java:123", "com.acme.Foo$Bar.baz", "123", "baz")),
        ("nginx/1.18.0 on 10.0.0.1", ("1.18.0", "nginx/1.18.0", "10.0.0.1", "1.18")),
        ("NullPointerException in HelloRetryRequest", ("nullpointerexception", "pointer", "retry")),
        ("gmt_unix_time", ("gmt_unix_time", "unix", "gmt")),
        ("Die Schlüssel für Müllers Häuser sind groß.", ("müller", "Mueller", "muller", "GROSS", "schluessel", "haus")),
        ("L'élève a oublié son mot de passe; c'est déjà réparé.", ("eleve", "élève", "oublie", "DEJA", "passe")),
        ("У Пётра сломалась ёлка, версия 2.", ("петра", "Пётр", "елка", "ёлку", "сломалась", "версии")),
        ("Ο Οδυσσέας έχασε τον κωδικό.", ("οδυσσεας", "ΟΔΥΣΣΈΑΣ", "κωδικό", "κωδικο")),
        ("İstanbul'da ışık yok, Łódź też.", ("istanbul", "isik", "ışık", "lodz", "Łódź")),
        ("東京都の検索は遅い", ("東京", "京都", "検索", "遅", "東京都の検索")),
        ("ﾃﾞｰﾀ ﾍﾞｰｽ が壊れた", ("データ", "ベース", "壊れた")),
        ("한국어 검색이 안 됩니다", ("한국어", "검색", "됩니다")),
        ("ผมลืมรหัสผ่าน", ("รหัสผ่าน", "ลืม")),
        ("मेरा पासवर्ड काम नहीं करता", ("पासवर्ड", "काम")),
        ("הסיסמה שָׁלוֹם לא עובדת", ("הסיסמה", "שלום", "עובדת")),
        ("نسيت كَلِمَةَ المرور", ("كلمة", "المرور", "نسيت")),
        ("می‌خواهم وارد شوم", ("می‌خواهم", "میخواهم", "وارد")),
        ("ខ្ញុំភ្លេចពាក្យសម្ងាត់", ("ពាក្យ", "សម្ងាត់")),
        ("The user’s laptop doesn’t start", ("user", "user's", "doesn't", '"doesn’t start"')),
    ],
)  # fmt: skip
def test_compounds_and_words_of_every_language_are_found(desk: MemoryDesk, text: str, queries: tuple[str, ...]) -> None:
    number = desk.ticket("One", text)
    desk.ticket("Nothing", "of this kind")
    assert {query: found(desk, query) for query in queries} == {query: [number] for query in queries}


@pytest.mark.parametrize("text", ["CVE-2014-0160", "nginx/1.18.0", "10.0.0.1", "joe.doe@example.com", "well-to-do"])
def test_a_compound_is_found_by_each_of_its_beginnings(desk: MemoryDesk, text: str) -> None:
    number = desk.ticket(f"Concerning {text} again")
    for end in range(4, len(text) + 1):
        assert number in found(desk, text[:end]), text[:end]
        assert number in [int(one.number) for one in suggesting.suggest(desk.agent, text[:end]).tickets], text[:end]


def test_what_only_begins_with_the_short_end_of_a_compound_is_not_read() -> None:
    query, _ = search_query.parse("CVE-2014-01")
    asked = [(term.matcher.spellings, term.only_ranks) for term in index_lookup.asked_terms(query)]
    assert asked == [(("2014",), False), (("cve-2014-01",), True), (("cve",), False)]


# --- what is shown ---


def test_title_and_snippet_mark_what_was_found(desk: MemoryDesk) -> None:
    before = "Lorem ipsum dolor sit amet consectetur. " * 8
    desk.ticket("The Printer & its <b>", f"{before}Smoke from the printers, and  \n more smoke. {before}")
    (hit,) = ticket_search.find(desk.agent, "printer smoke").hits
    assert marked(hit.title) == "The [Printer] & its <b>"
    snippet = marked(hit.snippet)
    assert "[Smoke] from the [printers], and more [smoke]." in snippet
    assert (snippet[0], snippet[-1], hit.where) == ("…", "…", Where.DESCRIPTION)
    assert snippet[1:].split()[0] in before.split()
    assert len("".join(piece.text for piece in hit.snippet)) < 230


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("choose **Export → CSV** or __print__", "csv", "choose Export → [CSV] or print"),
        ("``` ERROR in `the connector` ```", "connector", " ERROR in the [connector] "),
        ("see ![the keys](https://cloud.example/keys.png) here", "keys", "see the [keys] here"),
        ("see [the page](/docs/page) here", "docs", "see the page](/[docs]/page) here"),
        ("a **red** lantern", '"a red lantern"', "[a red lantern]"),
        ("in *Account*, _Invoices_; 2*3*4, 5* and a_b_c", "invoices", "in Account, [Invoices]; 2*3*4, 5* and a_b_c"),
        ("as written:\n> the number\n> > of the recipient", "number", "as written: the [number] of the recipient"),
        ("2 ** 3, snake_case_name and a__b", "snake", "2 ** 3, [snake]_case_name and a__b"),
    ],
)
def test_a_snippet_shows_words_without_markup(desk: MemoryDesk, text: str, query: str, shown: str) -> None:
    desk.ticket("One", text)
    (hit,) = ticket_search.find(desk.agent, query).hits
    assert marked(hit.snippet) == shown


def test_a_hit_says_where_the_words_stand(desk: MemoryDesk) -> None:
    desk.ticket("Apple")
    desk.ticket("One", "A pear")
    desk.ticket("Two", comments=["A plum"])
    desk.ticket("Three", notes=["A fig"])
    desk.ticket("Four", tags=["cherry"])
    desk.ticket("Five", requester_name="Quince Jones")
    queries = ("apple", "pear", "plum", "fig", "cherry", "quince")
    assert [ticket_search.find(desk.agent, query).hits[0].where for query in queries] == [
        one for one in Where if one is not Where.CUSTOM
    ]


def test_marks_stand_on_whole_letters_whatever_was_composed(desk: MemoryDesk) -> None:
    desk.ticket("Cafe\u0301 ｶﾞｽ")
    (hit,) = ticket_search.find(desk.agent, "café ガス").hits
    assert marked(hit.title) in ("[Cafe\u0301] [ｶﾞｽ]", "[Cafe\u0301] [ｶﾞ][ｽ]")


# --- people and other conditions ---


def test_a_person_without_an_address_here_is_looked_for_by_name_and_that_is_said(desk: MemoryDesk) -> None:
    desk.ticket("Bill", requester_name="zorro@example.org")
    result = ticket_search.find(desk.agent, "bill from:zorro@example.org")
    assert len(result.hits) == 1
    assert "Nobody here has the address “zorro@example.org”" in " ".join(result.explanations)


def test_without_words_the_highest_number_comes_first(desk: MemoryDesk) -> None:
    for status in ("closed", "open", "closed", "open"):
        desk.ticket("One", status=status, tags=["money"])
    desk.plant(b"=tag:money", {2: 0xF8})  # as if it said more of this ticket
    assert found(desk, "tag:money") == [4, 3, 2, 1]


def test_conditions_are_asked_of_each_ticket(desk: MemoryDesk) -> None:
    own = desk.ticket("Bill one", resolver=ALICE, status="pending", tags=["money"], priority="high")
    other = desk.ticket("Bill two", resolver=BOB, created_at="2025-01-01T00:00:00.000000Z", requester=ALICE)
    free = desk.ticket("Bill three", status="closed", requester_name="Carol Jones")
    expected = {
        "status:pending": [own], "status:open,pending": [own, other], "status:unresolved": [own, other],
        "status:closed": [free], "assignee:me": [own], "assignee:nobody": [free], "assignee:bob": [other],
        'assignee:"Bob Example"': [other], "assignee:BOB@example.com": [other], "tag:money": [own],
        "priority:high": [own], "before:2025-01-02": [other], "before:2025-01-01": [], "after:2026-11-20": [own, free],
        "after:2026": [own, free], "from:me": [other], "from:alice@example.com": [other], "from:carol": [free],
        'from:"Carol Jones"': [free],
    }  # fmt: skip
    assert {asked: sorted(found(desk, f"bill {asked}")) for asked in expected} == expected


def test_a_list_can_be_searched_in(desk: MemoryDesk) -> None:
    desk.ticket("Bill", status="open", priority="low")
    wanted = desk.ticket("Bill", status="pending", priority="high", resolver=ALICE)
    within = Filters((Status.PENDING, Status.OPEN), ALICE, TicketFilter.parse({"priority": "high"}))
    assert found(desk, "bill", within=within) == [wanted]
    assert found(desk, "bill status:open", within=within) == []


def test_a_list_that_is_too_long_to_be_read_leaves_it_to_each_ticket(
    desk: MemoryDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [desk.ticket(f"Bill {n}") for n in range(3)]
    desk.ticket("Bill", status="closed")
    monkeypatch.setattr(ticket_search, "LISTED", 1)
    assert sorted(found(desk, "bill status:open")) == numbers


# --- pages ---


@pytest.mark.parametrize("newest_first", [False, True])
def test_searching_further_shows_every_ticket_once_and_ends(desk: MemoryDesk, *, newest_first: bool) -> None:
    for n in range(75):
        desk.ticket(f"Printer {n}", "printer " * (n % 7), index=False, resolver=ALICE if n % 2 else BOB)
    desk.index_as_segment(range(1, 76))
    for query, many in (("printer", 75), ("printer -71", 74), ("printer assignee:me", 37)):
        numbers = all_found(desk, query, newest_first=newest_first)
        assert len(numbers) == len({*numbers}) == many
        assert not newest_first or numbers == sorted(numbers, reverse=True)


def test_a_ticket_whose_number_was_typed_comes_on_no_later_page(desk: MemoryDesk) -> None:
    for n in range(1, 61):
        desk.ticket("Error 5" if n != 5 else f"A long text {'about nothing ' * 9} and 5", index=False)
    desk.index_as_segment(range(1, 61))
    numbers = all_found(desk, "5 ")
    assert numbers[0] == 5
    assert len(numbers) == len({*numbers}) == 60


def test_a_cursor_belongs_to_its_query(desk: MemoryDesk) -> None:
    fill(desk, 40, "Printer {}")
    further = ticket_search.find(desk.agent, "printer").further
    for query, how in (("printers", {}), ("printer", {"newest_first": True})):
        with pytest.raises(BadCursor):
            ticket_search.find(desk.agent, query, further=further, **how)  # type: ignore[arg-type]


def test_where_few_tickets_have_all_words_others_are_near(desk: MemoryDesk) -> None:
    whole, part = desk.ticket("Printer smokes"), desk.ticket("Printer whistles")
    result = ticket_search.find(desk.agent, "printer smokes")
    assert [[hit.summary.number for hit in hits] for hits in (result.hits, result.nearly)] == [[whole], [part]]
    assert result.about == 1
    assert ticket_search.find(desk.agent, '"printer" "smokes"').nearly == ()


@pytest.mark.parametrize(
    ("query", "is_counted"),
    [
        *((query, True) for query in ("printer", "printer smokes", "print*", "printer tag:hot", "printer status:open")),
        *((query, False) for query in ('"printer"', "printer -paper", "printer-smokes ", "printer after:2020", "2")),
        ("printer priority:normal", False),
    ],
)
def test_a_number_of_hits_is_said_only_where_no_text_can_deny_it(
    desk: MemoryDesk, query: str, *, is_counted: bool
) -> None:
    for n in range(3):
        desk.ticket(f"Printer smokes {n}", tags=["hot"])
    assert ticket_search.find(desk.agent, query).is_counted == is_counted


# --- filters that the index does not know ---


@pytest.mark.parametrize(
    ("asked", "values"),
    [
        ("printer priority:high", {"priority": "high"}),
        ("printer after:2026-11-21", {"created_at": "2026-11-21T00:00:00.000000Z"}),
        ("printer status:resolved", {"status": "resolved"}),
    ],
)
def test_filters_are_asked_of_a_hundred_tickets_before_a_page_says_that_it_found_nothing(
    desk: MemoryDesk, asked: str, values: dict[str, str]
) -> None:
    fill(desk, 150, "Printer {}", {51, 1}, **values)
    page = ticket_search.find(desk.agent, asked)
    assert [hit.summary.number for hit in page.hits] == [51]
    assert page.rest == 50
    assert found(desk, asked, further=page.further) == [1]


@pytest.mark.parametrize("title", ["الطابعة لا تعمل", "طابعة جديدة"])
def test_an_arabic_word_is_found_with_and_without_its_article_and_in_quotation_marks_as_it_is(
    desk: MemoryDesk, title: str
) -> None:
    number = desk.ticket(title)
    assert [found(desk, query) for query in ("طابعة", "الطابعة ", "طاب")] == [[number]] * 3
    assert sum(found(desk, query) == [number] for query in ('"طابعة"', '"الطابعة"')) == 1
    assert [one.number for one in suggesting.suggest(desk.agent, "طاب").tickets] == [number]


def test_a_page_counts_what_it_had_no_room_for_among_what_may_follow(desk: MemoryDesk) -> None:
    fill(desk, 36, "Printer {}", {*range(1, 37)}, priority="high")
    page = ticket_search.find(desk.agent, "printer priority:high")
    assert (len(page.hits), page.rest) == (20, 16)
    assert len(ticket_search.find(desk.agent, "printer priority:high", further=page.further).hits) == 16


def test_the_next_page_reads_of_what_had_no_room_only_where_the_words_stand(desk: MemoryDesk) -> None:
    for _ in range(ticket_search.CHECKED):
        desk.ticket("Printer", comments=["It hums"] * 20)
    further = ticket_search.find(desk.agent, "printer").further
    with meter.measure() as bill:
        assert len(ticket_search.find(desk.agent, "printer", further=further).hits) == 10
    assert sum(call.items for call in bill.calls if call.table == TICKETS.full_name) == 10


def trips(desk: MemoryDesk, query: str) -> int:
    index_lookup.forget()
    with meter.measure() as bill:
        ticket_search.find(desk.agent, query)
    return bill.trips


def test_filters_take_one_round_trip_more_and_only_where_more_than_a_page_is_proposed(desk: MemoryDesk) -> None:
    fill(desk, 100, "Printer {}", {1, 2, 3}, priority="high")
    few = desk.ticket("Scanner", priority="high")
    for _ in range(40):
        desk.ticket("It is slow", "The modem is", priority="high")
    expected = {"printer": 3, "modem priority:high": 4, "scanner priority:high": 3, "printer status:open": 3}
    assert found(desk, "scanner priority:high") == [few]
    assert {query: trips(desk, query) for query in expected} == expected


def test_what_filters_have_read_of_tickets_is_not_read_again(desk: MemoryDesk) -> None:
    fill(desk, 99, "Printer {}", {*range(1, 100, 2)}, priority="high")
    desk.ticket("Printer slow", "The printer is", priority="high")
    with meter.measure() as bill:
        assert len(ticket_search.find(desk.agent, "printer priority:high").hits) == ticket_search.SHOWN
    texts = [call.items for call in bill.calls if call.operation == "BatchGetItem" and call.table == TICKETS.full_name]
    assert texts == [ticket_search.SIFTED, 1]


@pytest.mark.parametrize("newest_first", [False, True])
def test_where_filters_let_many_pass_each_is_shown_once(desk: MemoryDesk, *, newest_first: bool) -> None:
    wanted = {*range(1, 240, 2)}
    fill(desk, 240, "Printer {}", wanted, priority="high")
    numbers = all_found(desk, "printer priority:high", newest_first=newest_first)
    assert sorted(numbers) == sorted(wanted)


def test_of_what_filters_let_pass_all_is_read_before_a_page_is_empty(desk: MemoryDesk) -> None:
    for number in range(1, 91):
        text = "Paper printer" if number > 2 else "Printer paper"
        desk.ticket(f"Order {number}", text, index=False, priority="high")
    desk.index_as_segment(range(1, 91))
    index_lookup.forget()
    with meter.measure() as bill:
        assert found(desk, '"printer paper" priority:high', newest_first=True) == [2, 1]
    assert bill.trips == 6


def test_the_tag_of_a_list_is_asked_of_the_index_like_one_that_is_typed(desk: MemoryDesk) -> None:
    fill(desk, 120, "Printer {}", {5}, tags=["billing"])
    page = ticket_search.find(desk.agent, "printer", within=Filters(only=TicketFilter(tag="billing")))
    assert ([hit.summary.number for hit in page.hits], page.about, page.further) == ([5], 1, "")


# --- the text decides ---


def test_what_the_text_does_not_say_any_more_is_not_found(desk: MemoryDesk) -> None:
    desk.ticket("Printer")
    desk.ticket("Scanner", number=1, index=False)
    result = ticket_search.find(desk.agent, "printer")
    assert (result.hits, result.about, result.further) == ((), 1, "")
    desk.plant(b"lantern", {1: postings.posting(postings.Places.TITLE, 1, 1), 99: 255})
    assert found(desk, "lantern") == []


def test_a_ticket_that_is_gone_is_not_found(desk: MemoryDesk) -> None:
    number = desk.ticket("Printer")
    desk.erase(number)
    assert found(desk, "printer") == []


# --- internal notes ---


def test_notes_are_found_by_agents_and_change_nothing_for_viewers() -> None:
    plain, noted = MemoryDesk(), MemoryDesk()
    for desk, notes in ((plain, []), (noted, ["The customer is a secretive printer"])):
        desk.ticket("Printer one", "It smokes")
        desk.ticket("Scanner", "Printer, too", notes=notes)
    assert [int(hit.summary.number) for hit in ticket_search.find(noted.agent, "secretive").hits] == [2]
    phrases = ('"secretive printer"', "printer -secretive")
    for query in ("secretive", "secretive*", "secret", "secretly", "printer", *phrases):
        answers = []
        for desk in (plain, noted):
            index_lookup.forget()
            with meter.measure() as bill:
                page = ticket_search.find(desk.viewer, query)
            shown = [(int(h.summary.number), h.title, h.snippet, h.where) for h in (*page.hits, *page.nearly)]
            costs = [(call.operation, call.read_units) for call in bill.calls]
            answers.append((shown, page.about, page.explanations, page.further, bill.trips, sorted(costs)))
        assert answers[0] == answers[1]


# --- what cannot be answered ---


def test_a_search_in_an_index_that_was_never_built_says_so(desk: MemoryDesk) -> None:
    desk.ticket("Printer", index=False)
    assert ticket_search.find(desk.agent, "printer").explanations == (ticket_search.NOTHING_INDEXED,)


def test_who_asks_nothing_is_told_so(desk: MemoryDesk) -> None:
    with pytest.raises(Invalid, match="Type a word"):
        ticket_search.find(desk.agent, " ")
