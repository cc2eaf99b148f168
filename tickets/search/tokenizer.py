"""Take texts apart into words: the terms that are indexed, and the places of words in a text.

Both sides of the index use it: what was folded when a ticket was written is found by folding what somebody types in
the same way. VERSION grows with every change of the rules: what was indexed by those of before is then indexed anew.

Words are runs of letters and digits. Scripts without spaces between words are indexed by pairs of characters, and by
the last one alone, so that any piece of such a text is found.

Words of English, German, French and Russian are not stemmed in the index. A search asks it for the range of terms that
begin like the word, and takes those to which Snowball's rules give the same stem in some language. So those rules may
change without a word being indexed anew.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

_ENGLISH: Final = (
    "a an and are as at be but by can do for from had has have he i if in is it its me my no not of on or our she so "
    "than that the their then there they this to was we were what when which who will with would you your"
)
_GERMAN: Final = (
    "aber als am auch auf aus bei das dem den der die du ein eine einem einen einer er es fur hat ich ihr im ist "
    "mit nicht oder sich sie sind uber um und von war wie wir zu zum zur"
)
_FRENCH: Final = (
    "au aux ce cette dans de du elle est et il je la le les mais nous ou par pas pour que qui sur un une vous"
)
_RUSSIAN: Final = "а без бы в вы для до и из или к как мы на не но о он она они от по с так то у что это я"
# Folded; changing them takes a new version of the tokenizer.
FUNCTION_WORDS: Final = frozenset(" ".join((_ENGLISH, _GERMAN, _FRENCH, _RUSSIAN)).split())

LEAST: Final = 3  # letters of a word that has other forms, and that all of them begin with
_LATIN: Final = ("english", "german", "french")
_CYRILLIC: Final = ("russian",)
_ARABIC: Final = "\u0621", "\u064a"  # the first and the last letter
_ARTICLE: Final = "\u0627\u0644"
_OTHER_LAST: Final = {"e": "i", "y": "i", "i": "y"}
_stemmers: dict[str, Any] = {}
_lock: Final = threading.Lock()  # a stemmer holds the word that it is at work on


def stems(word: str) -> dict[str, str]:
    """Return the stem of a folded word by language of its script; nothing for what has no other forms."""
    if len(word) < LEAST or not word.isalpha():
        return {}
    languages = _CYRILLIC if "а" <= word[0] <= "я" else _LATIN if word.isascii() else ()
    return {language: _stem(language, word) for language in languages}


def has_stem(word: str, found: Mapping[str, str]) -> bool:
    """Tell whether a folded word has one of these stems, which are those of another word (`stems`)."""
    if len(word) < LEAST or not word.isalpha():
        return False
    # Stemming takes long, and a stem is its word's beginning but for the last letter: most words need not be stemmed.
    return any(word.startswith(stem[:-1]) and _stem(language, word) == stem for language, stem in found.items())


def with_article(spellings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the spellings of a folded word and, of an Arabic one, those without its article, or with one."""
    others = [
        word.removeprefix(_ARTICLE)
        if len(word) >= len(_ARTICLE) + LEAST and word.startswith(_ARTICLE)
        else _ARTICLE + word
        for word in spellings
        if len(word) >= LEAST and _ARABIC[0] <= word[0] <= _ARABIC[1]
    ]
    return (*spellings, *others)


def beginnings(word: str) -> list[str]:
    """Return what the forms of a folded word begin with: the word itself where it has no other forms.

    The last letter of a stem may be another one in a form: possible and possibility, using and use, tries and try.
    """
    found = list(stems(word).values())
    if not found:
        return [word]
    common = min(_shared(word, stem) for stem in found)
    first = word[: max(LEAST, min(common, min(map(len, found)) - 1))]
    short = {stem for stem in found if len(stem) <= LEAST}
    others = {stem[:-1] + last for stem in short for last in _OTHER_LAST.get(stem[-1], "")}
    others |= {stem for stem in found if not stem.startswith(first)}
    return [first, *sorted(other for other in others if not other.startswith(first))]


def _shared(one: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@lru_cache(maxsize=50_000)
def _stem(language: str, word: str) -> str:
    import snowballstemmer  # the rules of all languages, of which most processes need none

    with _lock:
        if language not in _stemmers:
            _stemmers[language] = snowballstemmer.stemmer(language)
        return str(_stemmers[language].stemWord(word))


# --- words ---


VERSION: Final = 1
TERMS_LIMIT: Final = 10_000  # different terms of one text: 50,000 characters of prose or of a log have less
WHOLE_LIMIT: Final = 64  # characters of a compound, such as a mail address, that is a term as a whole
MARKS_LIMIT: Final = 30  # on one letter, as in Unicode's stream-safe texts: to order them takes their square
_LOOKED_AT: Final = 512  # characters of a word that is longer than that
_KEPT: Final = 40  # characters of a word
_KEPT_OF_LONG: Final = 16  # characters of a word that is longer than WHOLE_LIMIT: base64, digests


class Word(NamedTuple):
    """Hold a word's place in the text as it stands, and its folded forms: how it is spelt, then with ae for ä.

    `humps` are the words inside a camelCase name. In scripts without spaces each character is a word.
    """

    start: int
    end: int
    folded: tuple[str, ...]
    humps: tuple[str, ...] = ()


def _as_class(codes: Iterable[int]) -> str:
    """Return characters as ranges of a class of `re`, which compiles in a third of the time of their list."""
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in runs)


Spelling = tuple[tuple[str, ...], tuple[str, ...]]  # the folded forms of a word, and its humps

# Thai, Lao, Burmese, Khmer, Hangul, kana, bopomofo and ideographs, half-width forms among them.
_UNSPACED: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0ecd\u0ed0-\u0edf\u1000-\u1049\u1050-\u109d\u1100-\u11ff"
    "\u1780-\u17d3\u17dc-\u17e9\u3005-\u3007\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f"
    "\uffa1-\uffdc\U00020000-\U0003ffff"
)
# Marks are no letters to `re`; vowels of Devanagari are marks. Joiners, soft hyphens and the like are left out later.
_MARKS: Final = _as_class(
    code
    for code in range(0x300, 0xFE00)  # behind it there are variants of emoji, and marks of halves
    if unicodedata.category(chr(code)) in ("Mn", "Mc", "Me")
)
_SILENT: Final = "\u00ad\u200b-\u200f\u2060\ufeff"
_APOSTROPHES: Final = "'\u2019\uff07"
_JOINERS: Final = rf".@_:/\\+\-{_APOSTROPHES}\u2010\u2011\uff0e\uff20\uff3f\uff1a\uff0f\uff3c\uff0b\uff0d"
_LETTER: Final = rf"(?![{_UNSPACED}])[^\W_]"
_RUN: Final = rf"{_LETTER}(?:{_LETTER}|[{_MARKS}{_SILENT}])*"
_CHUNK: Final = re.compile(rf"[{_UNSPACED}][{_UNSPACED}{_MARKS}{_SILENT}]*|{_RUN}(?:[{_JOINERS}]+{_RUN})*")
_PART: Final = re.compile(_RUN)
_ASCII_CHUNK: Final = re.compile(r"[A-Za-z0-9]+(?:[.@_:/\\+\-']+[A-Za-z0-9]+)*")
_ASCII_PART: Final = re.compile(r"[A-Za-z0-9]+")
# The first alternative takes the letter behind an apostrophe out of the way.
_ASCII_WORD: Final = re.compile(r"(?<=[A-Za-z0-9]')[A-Za-z0-9](?![A-Za-z0-9])|([A-Za-z0-9]+)")
_SYMBOLS: Final = re.compile(rf"[^\w\x00-\x7f{_MARKS}{_SILENT}]")
_UNSEEN: Final = re.compile(rf"[{_MARKS}{_SILENT}\u0640]+")
_MANY_MARKS: Final = re.compile(rf"[{_MARKS}{_SILENT}\uff9e\uff9f]{{{MARKS_LIMIT + 1},}}")
_IS_UNSPACED: Final = re.compile(rf"[{_UNSPACED}]")
_MAY_COMPOSE: Final = re.compile(rf"[{_MARKS}{_SILENT}\u1100-\u11ff\u3099\u309a\uff9e\uff9f]")
# What composes to one character or shows as one: a syllable of Hangul in parts, a letter with its marks.
_CLUSTER: Final = re.compile(
    rf"[\u1100-\u115f]+[\u1160-\u11a7]*[\u11a8-\u11ff]*|.[{_MARKS}{_SILENT}\u3099\u309a\uff9e\uff9f]*", re.DOTALL
)
# Letters and digits that are others written together with something else: a half is 1, a stroke and 2.
_MIXED: Final = "".join(
    char
    for char in map(chr, range(0x80, 0x1F110))
    if char.isalnum() and not unicodedata.normalize("NFKC", char).isalnum()
)
_IS_MIXED: Final = re.compile(f"[{_MIXED}]")
_HUMP: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_HYPHENS: Final = str.maketrans({"\u2010": "-", "\u2011": "-", "\u2019": "'"})
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
_STROKES: Final = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe"})


def words(text: str) -> list[Word]:
    """Return the words of a text in order, function words among them. Positions are those of the text as given."""
    return [Word(start, end, *spelling) for start, end, spelling in spelt(without_symbols(text))]


def spelt(text: str, *bounds: int) -> Iterator[tuple[int, int, Spelling]]:
    """Yield start, end and spelling of each word of a text `without_symbols`; if that is ASCII, of those in bounds."""
    if text.isascii():
        for match in _ASCII_WORD.finditer(text, *bounds):
            if part := match[1]:
                yield match.start(), match.end(), _spellings(part)
        return
    for start, chunk in _chunks(text):
        for a, b, spelling in _spelt_in(chunk):
            yield start + a, start + b, spelling


def without_symbols(text: str) -> str:
    """Return a text with spaces for symbols beyond ASCII, and words where they were: most texts then are ASCII.

    Of marks without end on one letter the first MARKS_LIMIT are left."""
    if text.isascii():
        return text
    return _SYMBOLS.sub(" ", _with_few_marks(text).replace("\u2019", "'").replace("\uff07", "'"))


def bare(text: str) -> str:
    """Return a text without case and marks, in which what `words` folds can be looked for: a quick look that finds too
    much and, but for ae that is written ä, never too little. Marks must be few (`without_symbols`)."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", _IS_MIXED.sub(lambda match: _folded(match[0]), text)).casefold()
    return _UNSEEN.sub("", unicodedata.normalize("NFKD", text).translate(_STROKES))


def terms(text: str) -> dict[str, int]:
    """Return what is indexed of a text, at most TERMS_LIMIT terms, each with the number of times it is there."""
    counts: dict[str, int] = {}
    for term in _terms(text):
        if term in counts:
            counts[term] += 1
        elif term not in FUNCTION_WORDS and len(counts) < TERMS_LIMIT:
            counts[term] = 1
    return counts


def unspaced_runs(text: str) -> list[list[str]]:
    """Return the characters of each run of a script without spaces, of which neighbours are indexed as pairs."""
    chunks = (chunk for _, chunk in _chunks(_with_few_marks(text)))
    return [[char for _, _, char in _characters(chunk)] for chunk in chunks if is_unspaced(chunk)]


def compounds(text: str) -> list[str]:
    """Return the words of a text as they are written together: mail addresses and versions whole, without brackets."""
    return [chunk for _, chunk in _chunks(text)]


def may_go_on(text: str) -> bool:
    """Tell whether a text ends within a word: in a letter or digit, or a mark behind one."""
    return text[-1:].isalnum() or _UNSEEN.match(text[-1:]) is not None


def is_unspaced(text: str) -> bool:
    """Tell whether a text has characters of a script without spaces between words."""
    return _IS_UNSPACED.search(text) is not None


def is_function_word(folded: str) -> bool:
    """Tell whether a folded word is so common that it is not indexed."""
    return folded in FUNCTION_WORDS


def whole(chunk: str) -> str | None:
    """Return the term of a compound as a whole, such as cve-2014-0160, or None where only its parts are terms."""
    if len(chunk) > WHOLE_LIMIT or not any(char.isdigit() or char in "@\uff20" for char in chunk):
        return None
    match = (_ASCII_CHUNK if chunk.isascii() else _CHUNK).fullmatch(chunk)
    if match is None or is_unspaced(chunk) or len(list(_parts(chunk))) < 2:
        return None
    return _folded(chunk.translate(_HYPHENS), keep=".@_:/\\+-'")


def _terms(text: str) -> Iterator[str]:
    for _, chunk in _chunks(_with_few_marks(text)):
        if _IS_UNSPACED.match(chunk):
            chars = [char for _, _, char in _characters(chunk)]
            yield from map("".join, pairwise(chars))
            yield from chars[-1:]
            continue
        several = 0
        for _, part in _parts(chunk):
            forms, humps = _spellings(part)
            yield from forms
            yield from humps
            several += 1
        if several > 1 and (joined := whole(chunk)):
            yield joined


def _with_few_marks(text: str) -> str:
    """Put what is left out anyway for marks beyond MARKS_LIMIT on one letter, so that all others stay in place."""
    if text.isascii():
        return text
    return _MANY_MARKS.sub(lambda run: run[0][:MARKS_LIMIT] + "\u00ad" * (len(run[0]) - MARKS_LIMIT), text)


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    pattern = _ASCII_CHUNK if text.isascii() else _CHUNK
    return ((match.start(), match[0]) for match in pattern.finditer(text))


def _spelt_in(chunk: str) -> Iterator[tuple[int, int, Spelling]]:
    if _IS_UNSPACED.match(chunk):
        yield from ((a, b, ((char,), ())) for a, b, char in _characters(chunk))
        return
    for at, part in [(0, chunk)] if chunk.isalnum() else _parts(chunk):
        if (spelling := _spellings(part))[0]:
            yield at, at + len(part), spelling


def _parts(chunk: str) -> Iterator[tuple[int, str]]:
    """Yield each part of a compound with its place. A single letter behind an apostrophe, as in don't, is none."""
    pattern = _ASCII_PART if chunk.isascii() else _PART
    for match in pattern.finditer(chunk):
        at, part = match.start(), match[0]
        if len(part) > 1 or not at or chunk[at - 1] not in _APOSTROPHES:
            yield at, part


def _characters(run: str) -> Iterator[tuple[int, int, str]]:
    """Yield each character of a run without spaces, composed, with the place of what it was composed of."""
    if run.isalnum() and not _MAY_COMPOSE.search(run) and unicodedata.is_normalized("NFKC", run):
        yield from ((at, at + 1, char) for at, char in enumerate(run))  # each folds to itself
        return
    for match in _CLUSTER.finditer(run):
        composed = _known_folded(match[0]) if len(match[0]) <= _KEPT_OF_LONG else _folded(match[0])
        yield from ((match.start(), match.end(), char) for char in composed)


def _spellings(part: str) -> Spelling:
    # Of words that nobody writes none is remembered, or whole texts would be.
    return _known_spellings(part) if len(part) <= WHOLE_LIMIT else (_forms(part[:_LOOKED_AT]), ())


@lru_cache(maxsize=20_000)
def _known_spellings(part: str) -> Spelling:
    return _forms(part), _humps(part)


def _forms(part: str) -> tuple[str, ...]:
    if part.isascii():
        return (_cut(part.lower()),)
    plain = _cut(_folded(part))
    if not plain:
        return ()
    spelt = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", part).casefold())
    other = _cut(_folded(spelt.translate(_UMLAUTS)))
    return (plain,) if other == plain else (plain, other)


def _humps(part: str) -> tuple[str, ...]:
    if part.islower() or part.isupper() or part.istitle() or not part.isascii():
        return ()
    humps = _HUMP.findall(part)
    return tuple(hump.lower() for hump in humps if len(hump) > 2) if len(humps) > 1 else ()


def _folded(text: str, *, keep: str = "") -> str:
    """Fold a text: compatible characters made one, no case, no marks where people leave them out. Other characters
    than letters, digits and marks stay where they are in `keep`."""
    if text.isascii():
        return text.lower()
    kept: list[str] = []
    base = ""
    plain = unicodedata.normalize("NFKC", text).casefold()
    for char in unicodedata.normalize("NFD", plain).translate(_STROKES):
        if unicodedata.category(char)[0] == "M":
            if not _may_be_left_out(char, base):
                kept.append(char)
        elif char.isalnum() and char != "\u0640":  # which only stretches an Arabic word
            base = char
            kept.append(char)
        elif char in keep:
            kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept))


def _may_be_left_out(mark: str, base: str) -> bool:
    """Tell whether people write a letter without this mark, too: accents, vowel points. And ё is written е."""
    if "\u0591" <= mark <= "\u05c7" or "\u064b" <= mark <= "\u065f" or mark == "\u0670":
        return True
    return base <= "\u024f" or "\u0370" <= base <= "\u03ff" or (base == "е" and mark == "\u0308")


def _cut(word: str) -> str:
    return word[:_KEPT_OF_LONG] if len(word) > WHOLE_LIMIT else word[:_KEPT]


_known_folded: Final = lru_cache(maxsize=10_000)(_folded)
