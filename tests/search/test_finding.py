"""What is typed finds the tickets that it should, marked, and no other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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


@pytest.fixture
def desk() -> MemoryDesk:
    return MemoryDesk()


def found(desk: MemoryDesk, text: str, **how: Any) -> list[int]:
    return [int(hit.summary.number) for hit in ticket_search.find(desk.agent, text, **how).hits]


def marked(pieces: Sequence[Piece]) -> str:
    return "".join(f"[{piece.text}]" if piece.is_match else piece.text for piece in pieces)


# --- words ---


def test_all_words_must_be_there_wherever_they_stand(desk: MemoryDesk) -> None:
    both = desk.ticket("The printer smokes", "In the cellar.", comments=["It is burning."])
    desk.ticket("The printer is slow")
    assert found(desk, "printer burning") == [both]


def test_a_word_is_found_in_its_other_forms_behind_those_that_are_spelt_so(desk: MemoryDesk) -> None:
    forms = [desk.ticket(f"It {word} here") for word in ("fails", "failing", "failed")]
    other = desk.ticket("It is a faille dress")
    assert found(desk, "failed ")[0] == forms[2]
    assert {*found(desk, "failed ")} == {*forms}
    assert other not in found(desk, "failed ")


def test_of_the_last_word_the_beginning_is_enough_while_it_may_go_on(desk: MemoryDesk) -> None:
    number = desk.ticket("Invoices are late")
    assert found(desk, "late invo") == [number]
    assert found(desk, "invo late") == []
    assert found(desk, "late invo ") == []


def test_a_star_asks_for_a_beginning_anywhere(desk: MemoryDesk) -> None:
    number = desk.ticket("Invoices are late")
    assert found(desk, "invo* late") == [number]


def test_quotation_marks_ask_for_words_as_they_are_spelt_and_stand(desk: MemoryDesk) -> None:
    as_said = desk.ticket("To be or not to be printed")
    desk.ticket("Not printed, to be or to be")
    desk.ticket("Or so it is: not, to be honest, printed at all")
    assert found(desk, '"or not to be printed"') == [as_said]
    desk.ticket("It prints")
    assert found(desk, '"prints"') == [4]


def test_words_in_quotation_marks_are_none_inside_of_other_words(desk: MemoryDesk) -> None:
    name = desk.ticket("HelloRetryRequest")
    words = desk.ticket("Hello, Retry Request")
    begun = desk.ticket("Say hello retryAgain")
    assert {*found(desk, "retry")} == {name, words, begun}
    assert found(desk, '"retry"') == found(desk, '"hello retry"') == [words]
    assert {*found(desk, 'hello -"retry"')} == {begun, name}
    assert found(desk, '"HelloRetryRequest"') == [name]


def test_a_phrase_does_not_go_from_one_text_to_the_next(desk: MemoryDesk) -> None:
    desk.ticket("The red", "fox jumps", comments=["over the lazy", "dog"])
    assert found(desk, '"red fox"') == []
    assert found(desk, '"lazy dog"') == []
    assert found(desk, '"fox jumps"') == [1]


def test_a_phrase_is_found_over_line_ends_and_markdown(desk: MemoryDesk) -> None:
    number = desk.ticket("A", "some **very**\n> large\tbill")
    assert found(desk, '"some very large bill"') == [number]


def test_a_word_can_be_left_out(desk: MemoryDesk) -> None:
    kept = desk.ticket("Printer one")
    desk.ticket("Printer two", comments=["It smokes"])
    desk.ticket("Printer three", "by a smoking man")
    assert found(desk, "printer -smoking") == [kept]
    assert found(desk, 'printer -"smoking man"') == [2, kept] or found(desk, 'printer -"smoking man"') == [kept, 2]


def test_mail_addresses_versions_and_the_like_are_found_whole_and_by_part(desk: MemoryDesk) -> None:
    texts = {
        "joe.doe@example.com": ("joe", "doe", "example.com", "joe.doe@example.com"),
        "CVE-2014-0160": ("cve-2014-0160", "2014-0160", "0160"),
        "https://host.example.org/a/b?q=77": (
            "host.example.org",
            "example",
            "q=77",
            "https://host.example.org/a/b?q=77",
        ),
        "at com.acme.Foo$Bar.baz(Foo.java:123)": ("Foo.java:123", "com.acme.Foo$Bar.baz", "123", "baz"),
        "nginx/1.18.0 on 10.0.0.1": ("1.18.0", "nginx/1.18.0", "10.0.0.1", "1.18"),
        "NullPointerException in HelloRetryRequest": ("nullpointerexception", "pointer", "helloretryrequest", "retry"),
        "gmt_unix_time": ("gmt_unix_time", "unix", "gmt"),
    }
    numbers = {text: desk.ticket("Report", text) for text in texts}
    for text, queries in texts.items():
        for query in queries:
            assert numbers[text] in found(desk, query), query


@pytest.mark.parametrize("text", ["CVE-2014-0160", "nginx/1.18.0", "10.0.0.1", "joe.doe@example.com", "well-to-do"])
def test_a_compound_is_found_by_each_of_its_beginnings(desk: MemoryDesk, text: str) -> None:
    number = desk.ticket(f"Concerning {text} again")
    for end in range(4, len(text) + 1):
        assert number in found(desk, text[:end]), text[:end]
        assert number in [int(one.number) for one in suggesting.suggest(desk.agent, text[:end]).tickets], text[:end]


def test_a_compound_goes_before_those_that_only_begin_so(desk: MemoryDesk) -> None:
    whole = desk.ticket("Update to 10.1")
    longer = [desk.ticket(f"Update to 10.1{n}") for n in range(5)]
    assert found(desk, "10.1")[0] == whole
    assert {*found(desk, "10.1")} == {whole, *longer}


def test_what_only_begins_with_the_short_end_of_a_compound_is_not_read(desk: MemoryDesk) -> None:
    query, _ = search_query.parse("CVE-2014-01")
    asked = index_lookup.asked_terms(query)
    assert [(t.matcher.spellings, t.only_ranks) for t in asked] == [
        (("2014",), False), (("cve-2014-01",), True), (("cve",), False)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "queries"),
    [
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
)
def test_every_language_finds_its_words(desk: MemoryDesk, text: str, queries: tuple[str, ...]) -> None:
    number = desk.ticket("1", text)
    desk.ticket("Nothing", "of this kind")
    assert {query: found(desk, query) for query in queries} == {query: [number] for query in queries}


def test_marks_that_make_another_letter_make_another_word(desk: MemoryDesk) -> None:
    desk.ticket("Мой дом")
    assert found(desk, '"мои"') == []


# --- what is shown ---


def test_title_and_snippet_mark_what_was_found(desk: MemoryDesk) -> None:
    before = "Lorem ipsum dolor sit amet consectetur. " * 8
    desk.ticket("The Printer & its <b>", f"{before}Smoke from the printers, and  \n more smoke. {before}")
    (hit,) = ticket_search.find(desk.agent, "printer smoke").hits
    assert marked(hit.title) == "The [Printer] & its <b>"
    assert "[Smoke] from the [printers], and more [smoke]." in marked(hit.snippet)
    assert marked(hit.snippet).startswith("…")
    assert marked(hit.snippet)[1:].split()[0] in before.split()
    assert marked(hit.snippet).endswith("…")
    assert len("".join(piece.text for piece in hit.snippet)) < 230
    assert hit.where is Where.DESCRIPTION


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("choose **Export → CSV** or __print__", "csv", "choose Export → [CSV] or print"),
        ("``` ERROR in `the connector` ```", "connector", " ERROR in the [connector] "),
        ("see ![the keys](https://cloud.example/keys.png) here", "keys", "see the [keys] here"),
        ("see [the page](/docs/page) here", "docs", "see the page](/[docs]/page) here"),
        ("a **red** lantern", '"a red lantern"', "[a red lantern]"),
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
    assert [ticket_search.find(desk.agent, query).hits[0].where for query in queries] == [*Where]


def test_marks_stand_on_whole_letters_whatever_was_composed(desk: MemoryDesk) -> None:
    desk.ticket("Cafe\u0301 ｶﾞｽ")
    (hit,) = ticket_search.find(desk.agent, "café ガス").hits
    assert marked(hit.title) == "[Cafe\u0301] [ｶﾞｽ]" or marked(hit.title) == "[Cafe\u0301] [ｶﾞ][ｽ]"


# --- numbers, people and other conditions ---


@pytest.mark.parametrize("text", ["#2", "2"])
def test_a_number_finds_its_ticket_first_and_then_what_mentions_it(desk: MemoryDesk, text: str) -> None:
    desk.ticket("See #2")
    desk.ticket("The second")
    assert found(desk, text) == [2, 1]


def test_a_ticket_whose_number_was_typed_comes_on_no_later_page(desk: MemoryDesk) -> None:
    for n in range(1, 61):
        desk.ticket("Error 5" if n != 5 else f"A long text {'about nothing ' * 9} and 5", index=False)
    desk.index_as_segment(range(1, 61))
    page = ticket_search.find(desk.agent, "5 ")
    numbers = [hit.summary.number for hit in page.hits]
    while page.further:
        page = ticket_search.find(desk.agent, "5 ", further=page.further)
        numbers += [hit.summary.number for hit in page.hits]
    assert numbers[0] == 5
    assert len(numbers) == len({*numbers}) == 60


def test_a_number_with_its_mark_is_no_beginning_of_another(desk: MemoryDesk) -> None:
    desk.ticket("Picture 23642032")
    assert found(desk, "#236") == []


def test_a_number_beside_words_is_the_ticket_that_has_these_or_a_number_in_a_text(desk: MemoryDesk) -> None:
    desk.ticket("About invoice 2")
    desk.ticket("The invoice")
    desk.ticket("Invoice 4.2")
    assert found(desk, "#2 invoice")[0] == found(desk, "invoice #2")[0] == 2
    assert {*found(desk, "#2 invoice")} == {1, 2, 3}
    assert found(desk, "#2 -invoice") == []
    assert found(desk, "#2 paper") == []
    assert found(desk, "#2 invoice status:closed") == []


def test_who_has_no_address_here_is_looked_for_by_name_and_that_is_said(desk: MemoryDesk) -> None:
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
        "status:pending": [own],
        "status:open,pending": [own, other],
        "status:unresolved": [own, other],
        "status:closed": [free],
        "assignee:me": [own],
        "assignee:nobody": [free],
        "assignee:bob": [other],
        'assignee:"Bob Example"': [other],
        "assignee:BOB@example.com": [other],
        "tag:money": [own],
        "priority:high": [own],
        "before:2025-01-02": [other],
        "before:2025-01-01": [],
        "after:2026-11-20": [own, free],
        "after:2026": [own, free],
        "from:me": [other],
        "from:alice@example.com": [other],
        "from:carol": [free],
        'from:"Carol Jones"': [free],
    }
    assert {asked: sorted(found(desk, f"bill {asked}")) for asked in expected} == expected


def test_tags_and_requesters_are_found_without_a_word(desk: MemoryDesk) -> None:
    number = desk.ticket("One", tags=["money"], requester=ALICE)
    desk.ticket("Money", requester_name="Alice")
    assert found(desk, "tag:money") == [number]
    assert found(desk, "from:me") == [number]


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


def test_searching_further_shows_every_ticket_once_and_ends(desk: MemoryDesk) -> None:
    for n in range(75):
        desk.ticket(f"Printer {n}", "printer " * (n % 7), index=False, resolver=ALICE if n % 2 else BOB)
    desk.index_as_segment(range(1, 76))
    for query, many in (("printer", 75), ("printer -71", 74), ("printer assignee:me", 37)):
        for newest_first in (False, True):
            page = ticket_search.find(desk.agent, query, newest_first=newest_first)
            numbers = [hit.summary.number for hit in page.hits]
            while page.further:
                page = ticket_search.find(desk.agent, query, newest_first=newest_first, further=page.further)
                numbers += [hit.summary.number for hit in page.hits]
            assert len(numbers) == len({*numbers}) == many
            if newest_first:
                assert numbers == sorted(numbers, reverse=True)


def test_a_cursor_belongs_to_its_query(desk: MemoryDesk) -> None:
    for n in range(40):
        desk.ticket(f"Printer {n}", index=False)
    desk.index_as_segment(range(1, 41))
    further = ticket_search.find(desk.agent, "printer").further
    with pytest.raises(BadCursor):
        ticket_search.find(desk.agent, "printers", further=further)
    with pytest.raises(BadCursor):
        ticket_search.find(desk.agent, "printer", newest_first=True, further=further)


def test_where_few_tickets_have_all_words_others_are_near(desk: MemoryDesk) -> None:
    whole = desk.ticket("Printer smokes")
    part = desk.ticket("Printer whistles")
    result = ticket_search.find(desk.agent, "printer smokes")
    assert [hit.summary.number for hit in result.hits] == [whole]
    assert [hit.summary.number for hit in result.nearly] == [part]
    assert result.about == 1
    assert ticket_search.find(desk.agent, '"printer" "smokes"').nearly == ()


def test_a_number_of_hits_is_said_only_where_no_text_can_deny_it(desk: MemoryDesk) -> None:
    for n in range(3):
        desk.ticket(f"Printer smokes {n}", tags=["hot"])
    counted = ("printer", "printer smokes", "print*", "printer tag:hot", "printer status:open")
    not_counted = (
        '"printer"',
        "printer -paper",
        "printer-smokes ",
        "printer priority:normal",
        "printer after:2020",
        "2",
    )
    for queries, is_counted in ((counted, True), (not_counted, False)):
        assert {query: ticket_search.find(desk.agent, query).is_counted for query in queries} == dict.fromkeys(
            queries, is_counted
        )


# --- filters that the index does not know ---


def sifted_desk(desk: MemoryDesk, many: int, wanted: Collection[int], **values: Any) -> None:
    """Write tickets that all have a word, those that are wanted with these values."""
    for number in range(1, many + 1):
        desk.ticket(f"Printer {number}", index=False, **(values if number in wanted else {}))
    desk.index_as_segment(range(1, many + 1))


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
    sifted_desk(desk, 150, {51, 1}, **values)
    page = ticket_search.find(desk.agent, asked)
    assert [hit.summary.number for hit in page.hits] == [51]
    assert page.rest == 50
    assert found(desk, asked, further=page.further) == [1]


def test_filters_take_one_round_trip_more_and_only_where_more_than_a_page_is_proposed(desk: MemoryDesk) -> None:
    sifted_desk(desk, 100, {1, 2, 3}, priority="high")
    few = desk.ticket("Scanner", priority="high")
    trips = {}
    for query in ("printer", "printer priority:high", "scanner priority:high", "printer status:open"):
        index_lookup.forget()
        with meter.measure() as bill:
            ticket_search.find(desk.agent, query)
        trips[query] = bill.trips
    assert found(desk, "scanner priority:high") == [few]
    assert trips == {
        "printer": 3,
        "printer priority:high": 4,
        "scanner priority:high": 3,
        "printer status:open": 3,
    }


def test_where_filters_let_many_pass_each_is_shown_once(desk: MemoryDesk) -> None:
    wanted = {*range(1, 240, 2)}
    sifted_desk(desk, 240, wanted, priority="high")
    for newest_first in (False, True):
        numbers: list[int] = []
        further = ""
        while further or not numbers:
            page = ticket_search.find(desk.agent, "printer priority:high", newest_first=newest_first, further=further)
            assert page.hits
            numbers += [int(hit.summary.number) for hit in page.hits]
            further = page.further
        assert len(numbers) == len(wanted)
        assert {*numbers} == wanted


def test_of_what_filters_let_pass_all_is_read_before_a_page_is_empty(desk: MemoryDesk) -> None:
    for number in range(1, 91):
        desk.ticket(f"Paper printer {number}" if number > 2 else "Printer paper", index=False, priority="high")
    desk.index_as_segment(range(1, 91))
    index_lookup.forget()
    with meter.measure() as bill:
        assert found(desk, '"printer paper" priority:high', newest_first=True) == [2, 1]
    assert bill.trips == 5


def test_the_tag_of_a_list_is_asked_of_the_index_like_one_that_is_typed(desk: MemoryDesk) -> None:
    sifted_desk(desk, 120, {5}, tags=["billing"])
    within = Filters(only=TicketFilter(tag="billing"))
    page = ticket_search.find(desk.agent, "printer", within=within)
    assert [hit.summary.number for hit in page.hits] == [5]
    assert (page.about, page.further) == (1, "")


# --- the text decides ---


def test_what_the_text_does_not_say_any_more_is_not_found(desk: MemoryDesk) -> None:
    desk.ticket("Printer")
    desk.ticket("Scanner", number=1, index=False)
    assert found(desk, "printer") == []
    result = ticket_search.find(desk.agent, "printer")
    assert (result.about, result.further) == (1, "")


def test_a_ticket_that_is_gone_is_not_found(desk: MemoryDesk) -> None:
    desk.ticket("Printer")
    desk.store.engine.partitions.clear()
    assert found(desk, "printer") == []


def test_a_planted_posting_shows_nothing(desk: MemoryDesk) -> None:
    desk.ticket("Printer")
    desk.plant(b"scanner", {1: postings.posting(postings.Places.TITLE, 1, 1), 99: 255})
    assert found(desk, "scanner") == []


def test_a_comment_behind_a_hundred_others_is_found(desk: MemoryDesk) -> None:
    number = desk.ticket("A", comments=["It whistles", *["Again"] * 250])
    assert found(desk, "whistles") == [number]
    assert found(desk, "again -whistles") == []


# --- internal notes ---


def test_notes_are_found_by_agents_and_change_nothing_for_viewers() -> None:
    plain, noted = MemoryDesk(), MemoryDesk()
    for desk, notes in ((plain, []), (noted, ["The customer is a secretive printer"])):
        desk.ticket("Printer one", "It smokes")
        desk.ticket("Scanner", "Printer, too", notes=notes)
    assert [int(hit.summary.number) for hit in ticket_search.find(noted.agent, "secretive").hits] == [2]
    for query in (
        "secretive",
        "secretive*",
        "secret",
        "secretly",
        "printer",
        '"secretive printer"',
        "printer -secretive",
    ):
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
