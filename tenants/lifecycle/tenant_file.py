"""Write and read the file of a whole tenant: a zip archive of JSON lines, one entry for each holding, and a manifest.

A line is one stored item, {"table", "item", "sum"}: the item as DynamoDB has it, binary values in base64, and the hash
of both. The manifest comes last: the format's version, the tenant, whether secrets are in it, and for each entry its
holding, its lines and the SHA-256 of its bytes. A file without it is not whole.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from portal import atomic_file, plain_text
from portal.errors import PortalError
from portal.schema.holdings import Raw

MANIFEST: Final = "manifest.json"
FORMAT: Final = "pooldesk-tenant"
VERSION: Final = 1
_SUM_BYTES: Final = 12
_LONGEST_MANIFEST: Final = 1_000_000  # bytes
_LONGEST_LINE: Final = 1_000_000  # bytes; an item has 400 KB at most, in base64 a third more


class FileFault(PortalError):
    """A file of a tenant that is not whole, or not as it was written. The sentence names the entry and the line."""

    code = "tenant_file"


@dataclass(frozen=True)
class Entry:
    """One entry of the archive: a holding's lines."""

    holding: str
    name: str
    lines: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """Say what a file is: of which tenant, made when, and its entries in the order in which they were written.

    `left_out` has, by the names of the holdings that are not in the file, the reason.
    """

    tenant_id: str
    slug: str
    name: str
    made_at: str
    with_secrets: bool
    entries: tuple[Entry, ...]
    left_out: dict[str, str]

    @property
    def lines(self) -> int:
        return sum(entry.lines for entry in self.entries)


class TenantFileWriter:
    """Writes the entries of a file one after the other, and the manifest at last."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.entries: list[Entry] = []

    def write(self, holding: str, items: Iterable[tuple[str, Raw]]) -> int:
        """Write a holding's items, each with its table's name, as they come. Returns how many."""
        name = f"{len(self.entries) + 1:02}-{holding.replace(' ', '-').lower()}.jsonl"
        hashed, lines = hashlib.sha256(), 0
        with self._archive.open(name, "w", force_zip64=True) as place:
            for table, item in items:
                line = _line(table, item)
                place.write(line)
                hashed.update(line)
                lines += 1
        self.entries.append(Entry(holding, name, lines, hashed.hexdigest()))
        return lines

    def end(self, manifest: Manifest) -> None:
        """Write the manifest, by which the file is whole."""
        told = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
        self._archive.writestr(MANIFEST, json.dumps(told, ensure_ascii=False, indent=1))


@contextmanager
def writing(path: Path) -> Iterator[TenantFileWriter]:
    """Open a file to be written. It stands under its name when it is whole, and not at all before. Raises OSError."""
    with (
        atomic_file.writing(path) as place,
        zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive,
    ):
        yield TenantFileWriter(archive)


class TenantFile:
    """A file that is read. `manifest` is known when it is opened, the entries are checked by `check`."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.manifest = _manifest(archive)

    def check(
        self,
        advance: Callable[[int], object] = lambda lines: None,
        *,
        look: Callable[[Entry, int, str, Raw], object] = lambda entry, number, table, item: None,
    ) -> None:
        """Read all of it and compare it with the manifest. Raises FileFault with the first line that is wrong.

        `look` is called with each row: its entry, its line, its table's name and the item.
        """
        known = {entry.name for entry in self.manifest.entries} | {MANIFEST}
        if strange := sorted(set(self._archive.namelist()) - known):
            raise FileFault(f"The file holds {strange[0]}, of which its manifest says nothing.")
        for entry in self.manifest.entries:
            hashed, lines = hashlib.sha256(), 0
            for number, line in self._lines(entry):
                if number > entry.lines:  # however much there is: a small archive can hold lines without end
                    raise FileFault(f"{entry.name} goes on behind line {entry.lines:,}, where it should end.")
                look(entry, number, *_parsed(entry, number, line))
                hashed.update(line)
                lines = number
                advance(1)
            if lines != entry.lines:
                raise FileFault(f"{entry.name} ends behind line {lines:,}; there should be {entry.lines:,}.")
            if hashed.hexdigest() != entry.sha256:
                raise FileFault(f"{entry.name} is not what the manifest says, though each of its lines is whole.")

    def items(self, entry: Entry, *, behind: int = 0) -> Iterator[tuple[int, str, Raw]]:
        """Yield the items of an entry behind a line: the line's number from 1, the table's name, the item."""
        for number, line in self._lines(entry):
            if number > behind:
                table, item = _parsed(entry, number, line)
                yield number, table, item

    def _lines(self, entry: Entry) -> Iterator[tuple[int, bytes]]:
        number = 0
        try:
            with self._archive.open(entry.name) as place:
                while line := place.readline(_LONGEST_LINE):
                    number += 1
                    yield number, line
        except KeyError:
            raise FileFault(f"{entry.name} is missing in the file.") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:  # the last: encrypted
            raise FileFault(f"{entry.name} cannot be read behind line {number:,}: {error}.") from error


@contextmanager
def reading(path: Path) -> Iterator[TenantFile]:
    """Open a file of a tenant. Raises FileFault, and OSError where it cannot be opened."""
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise FileFault(f"{path} is no whole file of a tenant: {error}.") from error
    with archive:
        yield TenantFile(archive)


def _manifest(archive: zipfile.ZipFile) -> Manifest:
    try:
        with archive.open(MANIFEST) as place:
            told: dict[str, Any] = plain_text.read_json(place.read(_LONGEST_MANIFEST))
        if told.pop("format") != FORMAT:
            raise ValueError("another format")
        if (version := told.pop("version")) != VERSION:
            raise FileFault(f"The file has version {version} of the format, and this is made for version {VERSION}.")
        told["entries"] = tuple(Entry(**entry) for entry in told["entries"])
        manifest = Manifest(**told)
        numbers = (entry.lines for entry in manifest.entries)
        texts = (text for entry in manifest.entries for text in (entry.holding, entry.name, entry.sha256))
        if not all(isinstance(text, str) for text in (*texts, manifest.slug, manifest.name, manifest.made_at)):
            raise ValueError("a text that is none")
        if not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise ValueError("a number of lines that is none")
        return manifest
    except plain_text.HalfCharacter as error:
        raise FileFault(f"The manifest of the file cannot be read, because {error}.") from error
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise FileFault("The file has no manifest that can be read, so it is not a whole tenant.") from error


def _line(table: str, item: Raw) -> bytes:
    told = {"table": table, "item": item, "sum": _sum(table, item)}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"), default=_in_base64).encode() + b"\n"


def _parsed(entry: Entry, number: int, line: bytes) -> tuple[str, Raw]:
    try:
        told = plain_text.read_json(line, object_hook=_with_bytes)
        if told["sum"] == _sum(told["table"], told["item"]):
            return told["table"], told["item"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileFault(f"Line {number:,} of {entry.name} cannot be read.") from error
    raise FileFault(f"Line {number:,} of {entry.name} is not as it was written.")


def _sum(table: str, item: Raw) -> str:
    text = json.dumps([table, item], sort_keys=True, separators=(",", ":"), default=_in_base64)
    return hashlib.blake2b(text.encode(), digest_size=_SUM_BYTES).hexdigest()


def _in_base64(binary: Any) -> str:
    return base64.b64encode(bytes(binary)).decode()


def _with_bytes(value: dict[str, Any]) -> dict[str, Any]:
    """Return a value of an item with its bytes. An attribute that is called B or BS has an object and no text."""
    if isinstance(binary := value.get("B"), str):
        return value | {"B": base64.b64decode(binary)}
    if isinstance(binaries := value.get("BS"), list):
        return value | {"BS": [base64.b64decode(one) for one in binaries]}
    return value
