"""Fold the quoted letters and the signature below what somebody wrote.

Nothing is dropped: each line is either in the text or folded. Answers between the lines of a quote stay where they
are, with the quote. Libraries for this take minutes on hostile text; this scanner looks at each line, and at most
eight lines after it, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from portal.mailing import quote_phrases as phrases

MARKER: Final = "Please reply above this line"  # in mail that we send; a reply holds our text from there on
_LINE_LIMIT: Final = 300  # characters; longer lines introduce no quote
_WRAPPED: Final = 4  # lines over which a sentence such as "On ..., ... wrote:" may be wrapped
_SIGNATURE_LIMIT: Final = 20  # lines
_LINES_LIMIT: Final = 20_000  # longer texts are shown as they are
_HEADER_LINES: Final = 8


class Folded(NamedTuple):
    """A text, and the part of it that is folded, "" where none is."""

    text: str
    folded: str


class _Run(NamedTuple):
    """Lines of one kind: from `start`, before `end`."""

    start: int
    end: int
    is_quote: bool


def fold(text: str, *, is_forwarded: bool = False) -> Folded:
    """Return the text without quotes and signature, and those. A forwarded letter stays visible."""
    lines = text.split("\n")
    if len(lines) > _LINES_LIMIT:
        return Folded(_tidy(lines), "")
    end = _history(lines, is_forwarded=is_forwarded)
    hidden = set(range(end, len(lines)))
    hidden |= _signature(lines, end)
    hidden |= _quotes(lines, [at for at in range(end) if at not in hidden])
    # A signature may stand above a quote, and a quote above a signature.
    hidden |= _signature(lines, _last_seen(hidden, end))
    if not any(line.strip() for at, line in enumerate(lines) if at not in hidden):
        return Folded(_tidy(lines), "")
    return Folded(
        _tidy(line for at, line in enumerate(lines) if at not in hidden),
        _tidy(line for at, line in enumerate(lines) if at in hidden),
    )


def _tidy(lines: Iterator[str] | list[str]) -> str:
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _last_seen(hidden: set[int], end: int) -> int:
    while end and end - 1 in hidden:
        end -= 1
    return end


def _is_quoted(line: str) -> bool:
    start = line[:12].lstrip()
    return start.startswith((">", "\N{FULLWIDTH GREATER-THAN SIGN}")) and not start.startswith(">From ")


# --- letters quoted without signs before their lines ---


def _history(lines: list[str], *, is_forwarded: bool) -> int:
    """Return where a letter begins that is quoted as a whole, the number of lines where none does."""
    for at, line in enumerate(lines):
        if not line.strip() or len(line) > _LINE_LIMIT or _is_quoted(line):
            continue
        if phrases.announces_forward(line):
            return len(lines)
        if _is_marker(line) or (not is_forwarded and _begins_letter(lines, at)):
            return _before(lines, at)
    return len(lines)


def _is_marker(line: str) -> bool:
    return phrases.is_marker(line[:_LINE_LIMIT].casefold())


def _begins_letter(lines: list[str], at: int) -> bool:
    if phrases.announces_original(lines[at]) or _is_header_block(lines, at):
        return True
    end = _attribution_end(lines, at)
    # A quote with signs before its lines may hold answers between them, so `_quotes` looks at it.
    return end is not None and not _is_quoted(next((line for line in lines[end : end + 3] if line.strip()), ""))


def _is_header_block(lines: list[str], at: int) -> bool:
    """Tell whether lines such as From, Sent, To and Subject begin here."""
    first = phrases.header_of(lines[at])
    if first not in ("from", "date"):
        return False
    seen, has_address = {first}, "@" in lines[at][:_LINE_LIMIT]
    for line in lines[at + 1 : at + _HEADER_LINES]:
        if found := phrases.header_of(line):
            seen.add(found)
        has_address = has_address or "@" in line[:_LINE_LIMIT]
    return len(seen) > 2 and ({"from", "subject"} <= seen or ({"from", "date"} <= seen and has_address))


def _attribution_end(lines: list[str], at: int) -> int | None:
    """Return where a sentence such as "On ..., ... wrote:" ends that begins here and holds an address or a time."""
    if not phrases.opens_attribution(lines[at]):
        return None
    joined = ""
    for end, line in enumerate(lines[at : at + _WRAPPED], at + 1):
        if len(line) > _LINE_LIMIT or not line.strip():
            return None
        joined = f"{joined} {line.strip()}"
        if phrases.closes_attribution(joined):
            return end if phrases.has_time_or_address(joined) else None
    return None


def _before(lines: list[str], at: int) -> int:
    """Return where the lines that introduce a quote begin: rules, blank lines, and who wrote when."""
    while at and (not lines[at - 1].strip() or phrases.is_rule(lines[at - 1])):
        at -= 1
    introduced = _introduction(lines, at, 0)
    while introduced and (not lines[introduced - 1].strip() or phrases.is_rule(lines[introduced - 1])):
        introduced -= 1
    return introduced


# --- quotes with a sign before each line ---


def _quotes(lines: list[str], seen: list[int]) -> set[int]:
    """Return the lines of the quotes that need not be seen to understand what was written."""
    runs = _runs(lines, seen)
    if not any(run.is_quote for run in runs) or not any(not run.is_quote for run in runs):
        return set()
    hidden: set[int] = set()
    if runs[-1].is_quote:
        hidden |= set(range(runs[-1].start, seen[-1] + 1))
        runs.pop()
    quotes = [run for run in runs if run.is_quote]
    # One quote before all that was written: the answer stands below it.
    if len(quotes) == 1 and runs[0].is_quote:
        hidden |= set(range(runs[0].start, runs[0].end))
    return hidden


def _runs(lines: list[str], seen: list[int]) -> list[_Run]:
    """Return runs of quoted and of written lines, without blank lines at their ends.

    The sentence that introduces a quote belongs to the quote.
    """
    runs: list[_Run] = []
    for at in seen:
        if not lines[at].strip():
            continue
        is_quote = _is_quoted(lines[at])
        if runs and runs[-1].is_quote == is_quote:
            runs[-1] = runs[-1]._replace(end=at + 1)
        else:
            runs.append(_Run(at, at + 1, is_quote))
    made: list[_Run] = []
    for run in runs:
        if run.is_quote and made:
            written = made.pop()
            start = _introduction(lines, run.start, written.start)
            if start > written.start:
                made.append(written._replace(end=start))
            elif made and made[-1].is_quote:
                start = made.pop().start
            made.append(run._replace(start=start))
        else:
            made.append(run)
    return made


def _introduction(lines: list[str], quote: int, least: int) -> int:
    """Return where the sentence begins that says who wrote the quote that begins at `quote`; `quote` without one."""
    last = quote
    while last > max(least, quote - 3) and not lines[last - 1].strip():
        last -= 1
    joined, loose = "", quote
    for at in range(last - 1, max(least, last - _WRAPPED) - 1, -1):
        if len(lines[at]) > _LINE_LIMIT or not lines[at].strip() or _is_quoted(lines[at]):
            break
        joined = f"{lines[at].strip()} {joined}".strip()
        if not phrases.ends_attribution(joined):
            break
        if phrases.opens_attribution(joined):
            return at
        if loose == quote and phrases.is_attribution(joined):
            loose = at
    return loose


# --- signatures ---


def _signature(lines: list[str], end: int) -> set[int]:
    """Return the lines of the signature that ends before `end`."""
    last = end
    while last and not lines[last - 1].strip():
        last -= 1
    at = last
    for at in range(last - 1, max(-1, last - _SIGNATURE_LIMIT), -1):
        if _is_quoted(lines[at]):
            break
        if phrases.is_signature_mark(lines[at]) or (phrases.is_list_footer(lines[at : at + 4])):
            return set(range(at, end))
    at = last - 1
    if at >= 0 and len(lines[at]) <= _LINE_LIMIT and phrases.is_mobile_signature(lines[at]):
        return set(range(at, end))
    return set()
