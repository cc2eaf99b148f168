"""Read the headers of a letter, however broken: names, addresses, Message-IDs and dates.

The header parser of the standard library raises on some of them, and its time grows with the square of the length on
others. Each function here passes over its text once.

Sources: RFC 5322 (format), RFC 2047 (encoded words), RFC 6532 (UTF-8 in headers).
"""

from __future__ import annotations

import binascii
import re
import string
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import Message
from email.utils import collapse_rfc2231_value, parsedate_to_datetime
from typing import Final, NamedTuple

from portal import plain_text
from portal.mailing import charsets

HEAD_LIMIT: Final = 256 * 1024  # bytes of one header block; what follows in it is not read
_HEADERS_LIMIT: Final = 1000
_VALUE_LIMIT: Final = 64 * 1024  # bytes of one header
_TEXT_LIMIT: Final = 1000  # characters of a subject or a name
_PARAMETER_LIMIT: Final = 8 * 1024
_ADDRESSES_LIMIT: Final = 200
_ONE_LIMIT: Final = 8 * 1024  # characters of a header that names one person
_IDS_LIMIT: Final = 50
_ADDRESS_LENGTH: Final = 320  # 64 octets, the sign, 255 octets (RFC 5321, 4.5.3.1)

_NAME: Final = re.compile(rb"([!-9;-~]{1,200})[ \t]*:")
_ENCODED: Final = re.compile(r"=\?([^\s?]{1,60})\?([bBqQ])\?([^?]*)(?:\?=|$)")
_ID: Final = re.compile(r"<([^<>]{1,900})>")
_BETWEEN_IDS: Final = re.compile(r"[\s<>,;\"]+")
# The lengths keep the time of text such as "\"\"\" in proportion to its length.
_WORD: Final = re.compile(
    r'"(?:[^"\\]|\\.){0,300}"|\((?:[^()\\]|\\.){0,300}\)|<[^<>]{0,1000}>|[,;:]|[^"(<,;:]+|.', re.DOTALL
)
_PAIR: Final = re.compile(r';\s{0,20}([\w-]{1,40})\*?\s{0,20}=\s{0,20}("[^"]{0,1000}"|[^;\s]{0,1000})')
_SPACE: Final = re.compile(r"\s+")
_FROM: Final = re.compile(rb"(?i)(?:\A|[\r\n])from[ \t]*:")
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_APART: Final = re.compile(r"\s*([.@])\s*")
_NAME_AND_SIGN: Final = re.compile(r"[^@]*@[^.(\[]*\Z")  # such as "Jane @ Acme"
_ADDRESSED: Final = re.compile(r"([^\s@<>\"'(),;:]{0,320})@([^\s@<>\"'),;:]*)")


class Address(NamedTuple):
    """A mailbox in a header: a name, and an address in lower case. Either may be empty."""

    name: str
    address: str


NOBODY: Final = Address("", "")


class Headers:
    """The headers of a letter or of one of its parts, in order. Names are compared without regard to case."""

    def __init__(self, fields: list[tuple[str, bytes]]) -> None:
        self._fields = fields
        self._charset = ""

    def raw(self, name: str) -> str:
        """Return the first header of that name as text, with its encoded words as they are, "" where there is none."""
        return next(self.all(name), "")

    def all(self, name: str) -> Iterator[str]:
        return (self._text(value) for found, value in self._fields if found == name)

    def text(self, name: str) -> str:
        """Return the first header of that name as one line for people."""
        return readable(self.raw(name))

    def assume_charset(self, charset: str) -> None:
        """Read bytes beyond ASCII in that character set, the one of the letter's text, where they are not UTF-8."""
        self._charset = charset

    def _text(self, value: bytes) -> str:
        value = value[:_VALUE_LIMIT]
        text = value.decode("ascii") if value.isascii() and b"\x1b" not in value else self._beyond_ascii(value)
        return _SPACE.sub(" ", text.replace("\x00", "")).strip()

    def _beyond_ascii(self, value: bytes) -> str:
        try:
            text = value.decode()
            return text if b"\x1b" not in value else charsets.decode(value, "iso-2022-jp").text
        except UnicodeError:
            return charsets.decode(value, self._charset).text

    def parameters(self, name: str) -> tuple[str, dict[str, str]]:
        """Return the value of a header such as Content-Type in lower case, and its parameters.

        Parameters of RFC 2231 are put together and decoded.
        """
        said = self.raw(name)[:_PARAMETER_LIMIT]
        message: Message = Message()
        try:
            message["X"] = said
            pairs = (message.get_params(header="X") or [])[1:]
        except (ValueError, LookupError, TypeError, AttributeError):  # the library fails on "name*" without a section
            pairs = [(key, value.strip('"')) for key, value in _PAIR.findall(said)]
        # Outlook writes names of files as encoded words, which RFC 2231 forbids.
        found = {key.lower().strip(" *"): readable(_parameter(value)) for key, value in pairs}
        return said.partition(";")[0].strip(" \"'").lower(), found

    def __len__(self) -> int:
        return len(self._fields)


def _parameter(value: object) -> str:
    if isinstance(value, tuple) and len(value) == 3:
        charset, _language, text = value
        return charsets.decode(str(text).encode("latin-1", "replace"), charset or "utf-8").text
    return collapse_rfc2231_value(str(value), errors="replace")


def read_head(data: bytes, start: int, end: int) -> tuple[Headers, int]:
    """Read the header block from `start`. Return it, and where its body begins."""
    fields: list[tuple[str, list[bytes]]] = []
    at = start
    while at < end:
        line, after = _line(data, at, end)
        if not line:
            return _headers(fields), after
        if at - start > HEAD_LIMIT or len(fields) > _HEADERS_LIMIT:
            return _headers(fields), _body_after(data, at, end)
        if line[:1] in (b" ", b"\t") and fields:
            fields[-1][1].append(line)
        elif match := _NAME.match(line):
            fields.append((match[1].decode("ascii").lower(), [line[match.end() :]]))
        elif at == start and line.startswith((b"From ", b">From ")):
            pass  # the first line of a letter from an mbox file
        elif fields and _goes_on(data, after, end):
            fields[-1][1].append(b" " + line)  # a folded header whose continuation has lost its blank
        else:
            return _headers(fields), at
        at = after
    return _headers(fields), end


def _line(data: bytes, at: int, end: int) -> tuple[bytes, int]:
    newline = data.find(b"\n", at, end)
    after = end if newline < 0 else newline + 1
    return data[at : min(after, at + _VALUE_LIMIT)].rstrip(b"\r\n"), after


def _goes_on(data: bytes, at: int, end: int) -> bool:
    return _NAME.match(data, at, min(end, at + 300)) is not None


def _body_after(data: bytes, at: int, end: int) -> int:
    found = [place + len(blank) for blank in (b"\n\n", b"\n\r\n") if (place := data.find(blank, at, end)) >= 0]
    return min(found, default=end)


def _headers(fields: list[tuple[str, list[bytes]]]) -> Headers:
    return Headers([(name, b"".join(lines)) for name, lines in fields])


def readable(text: str) -> str:
    """Return a header as one line for people: encoded words decoded, no control characters."""
    return plain_text.without_controls(_decoded(text), limit=_TEXT_LIMIT)


def _decoded(text: str) -> str:
    if "=?" not in text:
        return text
    made: list[str] = []
    waiting, charset, at = b"", "", 0  # of encoded words in a row: a character may begin in one and end in the next
    for match in _ENCODED.finditer(text):
        between = text[at : match.start()]
        goes_on = waiting and not between.strip()
        if waiting and (not goes_on or match[1].lower() != charset):
            made.append(charsets.decode(waiting, charset).text)
            waiting = b""
        if not goes_on:
            made.append(between)
        charset, at = match[1].lower(), match.end()
        waiting += _word(match[2], match[3])
    return "".join([*made, charsets.decode(waiting, charset).text, text[at:]])


def _word(encoding: str, text: str) -> bytes:
    if encoding in "qQ":
        return binascii.a2b_qp(text.encode("utf-8", "replace"), header=True)
    return base64_bytes(text.encode("ascii", "ignore"))


_NOT_BASE64: Final = bytes({*range(256)} - {*string.ascii_letters.encode(), *string.digits.encode(), *b"+/"})


def base64_bytes(data: bytes) -> bytes:
    """Decode base64, without regard to characters that do not belong there and to a missing end."""
    clean = data.translate(None, _NOT_BASE64)
    if len(clean) % 4 == 1:
        clean = clean[:-1]
    return binascii.a2b_base64(clean + b"=" * (-len(clean) % 4))


def addresses(text: str) -> tuple[Address, ...]:
    """Return the mailboxes of a header such as To, without those that have no address. At most 200 are read."""
    return tuple(one for one in _mailboxes(text) if one.address)


def address(text: str) -> Address:
    """Return the mailbox of a header such as From, NOBODY where there is none."""
    found = _mailboxes(text[:_ONE_LIMIT])
    return next((one for one in found if one.address), found[0] if found else NOBODY)


def _mailboxes(text: str) -> list[Address]:
    found: list[Address] = []
    words: list[str] = []
    addressed = False
    for match in _WORD.finditer(text):
        word = match[0]
        if word == ":":
            words, addressed = [], False  # those were the name of a group
        elif word == ";" or (word == "," and addressed):
            found.append(_mailbox(words))
            words, addressed = [], False
        else:  # a comma too: names such as Doe, John may lack their quotes
            words.append(word)
            addressed = addressed or "@" in word or word[0] == "<"
        if len(found) >= _ADDRESSES_LIMIT:
            break
    return [one for one in (*found, _mailbox(words)) if one != NOBODY][:_ADDRESSES_LIMIT]


def _mailbox(words: list[str]) -> Address:
    angles = [word for word in words if word.startswith("<")]
    comments = " ".join(word[1:-1] for word in words if word.startswith("(") and word.endswith(")"))
    rest = [word for word in words if not word.startswith(("<", "("))]
    if angles and (found := _clean_address(angles[-1])):
        return Address(_name("".join(map(_unquoted, rest))) or _name(comments), found)
    bare = [word for word in "".join(rest).split() if "@" in word]
    name = "".join(_unquoted(word) for word in rest)
    if not bare:
        return Address(_name(name) or _name(comments), "")
    return Address(_name(comments) or _name(name.replace(bare[-1].strip('"'), "", 1)), _clean_address(bare[-1]))


def _unquoted(word: str) -> str:
    if len(word) > 1 and word[0] == word[-1] == '"':
        return re.sub(r"\\(.)", r"\1", word[1:-1])
    return word


def _name(text: str) -> str:
    return readable(text).strip("\"', ")


def _clean_address(text: str) -> str:
    # Blanks, quotes and "mailto:" stand in addresses by mistake; a local part in quotes has no other use today.
    bare = _SPACE.sub("", readable(text)).strip("<>\"'`(),;").removeprefix("mailto:").replace('"', "")
    if bare.startswith("["):
        bare = bare.strip("[]")  # as Outlook writes addresses in text
    local, sign, domain = bare.rpartition("@")
    if not sign or not local or not domain or len(bare) > _ADDRESS_LENGTH:
        return ""
    return f"{local}@{domain.rstrip('.')}".lower()


def is_sole_sender(raw: bytes, headers: Headers, sender: Address) -> bool:
    """Tell whether every reader of the letter takes this address for its sender.

    Servers that check DMARC disagree about a letter with several From headers or addresses, or with an address in a
    name or a comment: what they found may be about another one. Source: Chen, Paxson and Jiang, "Composition Kills: A
    Case Study of Email Sender Authentication", USENIX Security 2020.
    """
    start = len(raw) - len(raw.lstrip())
    end = _HEAD_END.search(raw, start, start + HEAD_LIMIT)
    if end is None and len(raw) - start > HEAD_LIMIT:
        return False
    head = raw[start : end.start() if end else len(raw)]
    named = list(headers.all("from"))
    if len(named) != 1 or sum(1 for _ in _FROM.finditer(head)) != 1:
        return False
    pairs = _ADDRESSED.findall(_APART.sub(r"\1", named[0].lower()))
    found = {f"{local}@{domain.rstrip('.')}" for local, domain in pairs}
    return sender.address in found and not any(
        "." in one or "(" in one or "[" in one for one in found - {sender.address}
    )


def message_ids(text: str) -> tuple[str, ...]:
    """Return the Message-IDs in a header, each with its angle brackets: the first, and the last 50 of many.

    Python's own mail library sends long ones as encoded words, against RFC 2047.
    """
    text = _decoded(text)
    found = [f"<{_SPACE.sub('', one)}>" for one in _ID.findall(text)]
    if not found:
        found = [f"<{one}>" for one in _BETWEEN_IDS.split(text) if "@" in one and len(one) < 900]
    unique = list(dict.fromkeys(one for one in found if len(one) > 2))
    return tuple(unique if len(unique) <= _IDS_LIMIT else [unique[0], *unique[1 - _IDS_LIMIT :]])


def date(text: str) -> datetime | None:
    """Return a date of RFC 5322 in UTC, None where it is none or outside the years 1970 to 2100."""
    try:
        at = parsedate_to_datetime(text[:200])
        at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError, AttributeError):
        return None
    return at if 1970 <= at.year <= 2100 else None
