"""Verify evidence that a Pooldesk desk has given to an auditor. Needs Python 3.9 or newer, and nothing else.

    python3 verify_audit_export.py KEYS.json EXPORT.zip [LATER.zip ...] [CERTIFICATE ...] [HEAD ...]

KEYS.json holds the public keys, as /.well-known/pooldesk-keys.json of the installation has them. Compare them with the
keys that its operator has published elsewhere: who gives you a forged export could give you forged keys as well. A
public key itself, 64 hex digits, may stand in the place of KEYS.json. A name with * stands for all files that fit.

The script says of each file in one sentence whether it is as it was signed, else what is wrong and where. If anything
is wrong, the exit status is 1. It verifies the signature of the manifest; each row of the audit trail against its
hash; the chains of these hashes, from the first row to the ends that the manifest names; and each file against its
hash. Of several exports of a desk, the oldest first, it also verifies that each has the rows of those before it, as
they were, and no others of that time: so nobody who rewrites the past goes unnoticed, not even who holds the key. A
HEAD, the line that the monthly letter and the page Evidence show, is looked for in each export in the same way.

Sources: RFC 8032 (Ed25519), and docs/auditors.md of Pooldesk for the form of the files.
"""

from __future__ import annotations

import glob
import hashlib
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

# --- Ed25519, RFC 8032, section 5.1: verification alone, which needs no secret ---

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def decoded(data: bytes) -> tuple[int, int, int, int]:
    """Return the point that 32 bytes stand for, as (X, Y, Z, XY). Raises ValueError for what stands for none."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= P:
        raise ValueError("no point")
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or (x == 0 and sign):
        raise ValueError("no point")
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


def added(one: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Return the sum of two points."""
    a = (one[1] - one[0]) * (other[1] - other[0]) % P
    b = (one[1] + one[0]) * (other[1] + other[0]) % P
    c, d = 2 * one[3] * other[3] * D % P, 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number: int, point: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Return a point added to itself so many times."""
    total = (0, 1, 1, 0)
    while number:
        if number & 1:
            total = added(total, point)
        point, number = added(point, point), number >> 1
    return total


BASE = decoded((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def is_signed(message: bytes, signature: bytes, key: bytes) -> bool:
    """Tell whether a signature of 64 bytes over a message was made with the private key that belongs to this one."""
    try:
        point, known = decoded(signature[:32]), decoded(key)
    except ValueError:
        return False
    number = int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or number >= ORDER:
        return False
    digest = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    left, right = times(number, BASE), added(point, times(digest, known))
    return all((left[at] * right[2] - right[at] * left[2]) % P == 0 for at in (0, 1))


# --- what the files hold ---


Row = tuple[str, str, int, str]  # the hash, the hash of the row before it, the line, the moment in UTC

MOMENT = "timestamp_event_id"  # of a stored row: what begins with it
DEVELOPMENT = "8e2f2a6ab81b128f"  # the key that each installation without a setting has in development
MOST_SIGNED = 10_000_000  # bytes of a signed document
MORE = 1_000_000  # bytes that a changed file may have more than it was signed with, to be looked at
HEADER, DESCRIPTOR = 30, 24  # bytes before a file of a zip, but for its name and what follows that; and behind it
UNDER_WAY = timedelta(minutes=10)  # of a row between its moment and its place in the chain, with clocks that differ


class EvidenceFault(Exception):
    """Something is wrong; the message says what, and where."""


def read_keys(text: str) -> dict[str, bytes]:
    """Return public keys as bytes by their ids, of what /.well-known/pooldesk-keys.json holds or of one key alone."""
    try:
        texts = [text.strip()] if len(text.strip()) == 64 else [*json.loads(text).values()]
        keys = [bytes.fromhex(one) for one in texts]
    except (ValueError, AttributeError, TypeError):
        keys = []
    if not keys or any(len(key) != 32 for key in keys):
        raise EvidenceFault("These are no public keys: give what /.well-known/pooldesk-keys.json of the portal sends.")
    return {hashlib.sha256(key).hexdigest()[:16]: key for key in keys}


def written(document: Any) -> bytes:
    """Return a document in the one way in which it is signed."""
    return (json.dumps(document, sort_keys=True, indent=2, ensure_ascii=True) + "\n").encode("ascii")


def signed(content: bytes, keys: dict[str, bytes], what: str) -> dict[str, Any]:
    """Return what a signed document says, where it is byte for byte as it was signed by one of the keys."""
    try:
        document: dict[str, Any] = json.loads(content)
        signature = bytes.fromhex(document["signature"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise EvidenceFault(f"{what} cannot be read, or has no signature.") from None
    if document.get("key") not in keys:
        raise EvidenceFault(f"{what} names the key {document.get('key')!r}, which is not among the keys that you gave.")
    unsigned = {name: value for name, value in document.items() if name != "signature"}
    if written(document) != content or not is_signed(written(unsigned), signature, keys[document["key"]]):
        raise EvidenceFault(f"{what} was changed after it was signed, or not signed with the key {document['key']}.")
    return document


def hash_of(row: dict[str, Any]) -> str:
    """Return the hash of a row of the audit trail as it is stored, without its own hash."""
    content = {name: value for name, value in row.items() if name != "hash"}
    return hashlib.sha256(
        json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    ).hexdigest()


def place(partition: str, sequence: int, line: int = 0) -> str:
    return f"Row {sequence} of chain partition {partition}" + (f" (line {line} of audit-trail.jsonl)" if line else "")


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a stored row without the types of its values."""
    return {name: next(iter(value.values())) for name, value in row.items()}


def read_rows(lines: Iterable[bytes]) -> tuple[dict[tuple[str, int], Row], int]:
    """Return each row by its chain partition and number, and how many rows are withheld."""
    rows: dict[tuple[str, int], Row] = {}
    withheld = 0
    for line, text in enumerate(lines, 1):
        try:
            entry = json.loads(text)
            link = entry["withheld"] if "withheld" in entry else plain(entry["row"])
            key = link["partition"], int(link["sequence"])
            row = link["hash"], link.get("previous", ""), line, str(link["at" if "withheld" in entry else MOMENT])[:19]
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            raise EvidenceFault(f"Line {line} of audit-trail.jsonl is no row of an audit trail.") from None
        if "withheld" in entry:
            withheld += 1
        elif hash_of(entry["row"]) != row[0]:
            raise EvidenceFault(f"{place(*key, line)}, of {row[3]}, was altered: it does not fit its hash.")
        if key in rows:
            raise EvidenceFault(f"{place(*key, line)} was inserted: line {rows[key][2]} is the same row.")
        rows[key] = row
    return rows, withheld


def check_chain(rows: dict[tuple[str, int], Row], chain: dict[str, Any]) -> None:
    """Follow each chain partition from its first row to its end, which the manifest names. Raises EvidenceFault."""
    for partition, end in sorted(chain.items()):
        previous = ""
        for sequence in range(1, end["rows"] + 1):
            if (partition, sequence) not in rows:
                near = [
                    (what, rows.get((partition, at)))
                    for what, at in (("after", sequence - 1), ("before", sequence + 1))
                ]
                told = [f"{what} line {row[2]} of {row[3]}" for what, row in near if row]
                where = f" It was {' and '.join(told)}." if told else ""
                raise EvidenceFault(f"{place(partition, sequence)} is missing.{where}")
            own, before, line, _ = rows[partition, sequence]
            if before != previous:
                where = place(partition, sequence, line)
                raise EvidenceFault(f"{where} does not follow the row before it: one of them was replaced.")
            previous = own
        if previous != end["hash"]:
            where = place(partition, end["rows"])
            raise EvidenceFault(f"{where} was replaced: it is not the last row that the manifest names.")
    for (partition, sequence), row in sorted(rows.items()):
        if partition not in chain or not 1 <= sequence <= chain[partition]["rows"]:
            raise EvidenceFault(f"{place(partition, sequence, row[2])} was inserted: the manifest knows no such row.")


def check_since(rows: dict[tuple[str, int], Row], older: dict[str, Any], name: str) -> None:
    """Compare the rows with the manifest of an older export, from a file of this name. Raises EvidenceFault."""
    chain = older["chain"]
    for partition, end in sorted(chain.items()):
        if rows.get((partition, end["rows"]), ("", "", 0, ""))[0] != end["hash"]:
            where = place(partition, end["rows"])
            raise EvidenceFault(f"{where}, or one before it, was changed or removed since {name} was made.")
    ends = {partition: end["rows"] for partition, end in chain.items()}
    check_later(rows, ends, datetime.fromisoformat(older["made_at"][:19]), f"{name} was made")


def check_later(rows: dict[tuple[str, int], Row], ends: dict[str, int], moment: datetime, what: str) -> None:
    """Raise EvidenceFault for a row behind the ends of the chain at a moment that says that it is older than that."""
    for (partition, sequence), row in sorted(rows.items()):
        if sequence > ends.get(partition, 0) and datetime.fromisoformat(row[3]) < moment - UNDER_WAY:
            where = place(partition, sequence, row[2])
            raise EvidenceFault(f"{where} was put in after {what}, with a moment before that: {row[3]}.")


def check_zip(archive: zipfile.ZipFile) -> None:
    """Raise EvidenceFault for a zip that holds more than its directory names, which other programs might unpack, or
    that is packed as no export is."""
    end, file = 0, archive.fp
    for info in sorted(archive.infolist(), key=lambda one: one.header_offset):
        if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise EvidenceFault(f"{info.filename} is packed in a way in which no export is.")
        if file is None or not end <= info.header_offset <= end + DESCRIPTOR:
            raise EvidenceFault(f"The zip holds something before {info.filename} that its directory does not name.")
        file.seek(info.header_offset)
        header = file.read(HEADER)
        names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        end = info.header_offset + HEADER + names + info.compress_size
    if not end <= archive.start_dir <= end + DESCRIPTOR:
        raise EvidenceFault("The zip holds something behind its files that its directory does not name.")


PAGE_ENDS = b"\n<!-- signature, which `manage.py verify_certificate` verifies\n"  # behind a page
HEAD = re.compile(r"(\d{8}T\d{6})Z\.(\d+(?:-\d+)*)\.([0-9a-f]{32})", re.ASCII)


def check_head(rows: dict[tuple[str, int], Row], head: str) -> None:
    """Compare the rows with a head, which has their numbers by chain partition and a hash over their hashes."""
    parsed = HEAD.fullmatch(head)
    numbers = {str(partition): int(number) for partition, number in enumerate(parsed[2].split("-"))} if parsed else {}
    ends = [[name, [number, rows.get((name, number), ("",))[0]]] for name, number in sorted(numbers.items()) if number]
    digest = hashlib.sha256(json.dumps(ends).encode()).hexdigest()[:32]
    if parsed is None or digest != parsed[3]:
        why = "a row up to it was changed, or it is of another desk or later than the export"
        raise EvidenceFault(f"The head {head} does not fit: {why}.")
    moment = datetime.strptime(parsed[1], "%Y%m%dT%H%M%S")  # noqa: DTZ007  # of UTC, as those of rows
    check_later(rows, numbers, moment, f"the head {head} was calculated")


def manifest_of(archive: zipfile.ZipFile, keys: dict[str, bytes]) -> dict[str, Any]:
    """Return the manifest of an export, which names the files that are there and no others. Raises EvidenceFault."""
    names = archive.namelist()
    if "manifest.json" not in names or len({*names}) != len(names):
        raise EvidenceFault("This is no export of audit evidence: it has no manifest.json, or two files of one name.")
    check_zip(archive)
    if archive.getinfo("manifest.json").file_size > MOST_SIGNED:
        raise EvidenceFault("manifest.json is larger than any that an export has.")
    manifest = signed(archive.read("manifest.json"), keys, "manifest.json")
    if manifest.get("kind") != "audit evidence":
        raise EvidenceFault("manifest.json is no manifest of audit evidence.")
    files = manifest["files"]
    for name in sorted({*names, *files} - {"manifest.json"}):
        if name not in files:
            raise EvidenceFault(f"{name} was added: the manifest does not name it.")
        if name not in names:
            raise EvidenceFault(f"{name} is missing.")
        if archive.getinfo(name).file_size > files[name]["bytes"] + MORE:  # not read: it may be larger than the memory
            raise EvidenceFault(f"{name} was changed after it was signed: it is much larger.")
    return manifest


def check_export(
    archive: zipfile.ZipFile, keys: dict[str, bytes], others: dict[str, Any] | None = None, heads: Iterable[str] = ()
) -> str:
    """Verify an export, and return the sentence that says what it is. Raises EvidenceFault.

    `others` are the manifests of older exports by the names of their files, to which that of this one is added;
    `heads` are looked for in it.
    """
    manifest = manifest_of(archive, keys)
    files = manifest["files"]
    with archive.open("audit-trail.jsonl") as lines:
        rows, withheld = read_rows(lines)
    check_chain(rows, manifest["chain"])
    for head in heads:
        check_head(rows, head)
    others, desk = {} if others is None else others, manifest["desk"]
    same = [name for name, older in others.items() if older["desk"]["id"] == desk["id"]]
    for name in same:
        if others[name]["made_at"] > manifest["made_at"]:
            raise EvidenceFault(f"{name} was made later: give the oldest export first.")
        check_since(rows, others[name], name)
    for name, said in sorted(files.items()):
        with archive.open(name) as content:
            digest = hashlib.sha256()
            for piece in iter(lambda: content.read(65536), b""):
                digest.update(piece)
        if digest.hexdigest() != said["sha256"]:
            raise EvidenceFault(f"{name} was changed after it was signed.")
    different = [name for name in others if name not in same]
    others[archive.filename or ""] = manifest
    since = f" It has all rows of {', '.join(same)}, unchanged." if same else ""
    since += " It has the rows of each head that you gave, unchanged." if heads else ""
    if different:
        since += f" It was NOT compared with {', '.join(different)}: that is of another desk, whatever its name."
    less = (
        f" The content of {withheld} of them, about erased people, is withheld; their hashes hold." if withheld else ""
    )
    return (
        f"whole and unaltered. Evidence of the desk {desk['name']} ({desk['slug']}, {desk['id']}), made "
        f"{manifest['made_at']}, {by_key(manifest['key'])}: {len(rows)} rows of the audit trail, chain "
        f"intact, fingerprint {manifest['fingerprint']}.{less}{since}"
    )


def check_file(path: str, keys: dict[str, bytes], others: dict[str, Any], heads: list[str]) -> str:
    """Verify an export, a certificate or a signed page, and return a sentence. Raises EvidenceFault."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return check_export(archive, keys, others, heads)
    with open(path, "rb") as file:
        content = file.read(MOST_SIGNED)
    if content.startswith(b"PK"):
        raise EvidenceFault("The zip is cut off or damaged: download it again.")
    page, ends, signature = content.rpartition(PAGE_ENDS)
    if not ends and not content.lstrip().startswith(b"{"):
        raise EvidenceFault("This is no zip of evidence, no certificate and no signed page. A CSV is not signed.")
    if not ends:
        said = signed(content, keys, "The certificate")
        return f"unaltered. {said.get('kind', 'A certificate')}, {by_key(said['key'])}."
    said = signed(signature[: -len(b"-->\n")], keys, "The signature of the page")
    if said.get("sha256") != hashlib.sha256(page).hexdigest() or not signature.endswith(b"-->\n"):
        raise EvidenceFault("The page was changed after it was signed.")
    desk, result = said.get("tenant", {}).get("slug", ""), f"{said.get('kind')}: {said.get('result')}"
    return f"unaltered. A page, {by_key(said['key'])}.{f' Of the desk {desk}, {result}.' if desk else ''}"


def by_key(name: str) -> str:
    """Return the words about the key that something was signed with."""
    proves_nothing = " of development, WHICH EVERYBODY HAS: this proves nothing" if name == DEVELOPMENT else ""
    return f"signed by the key {name}{proves_nothing}"


def say(text: str) -> None:
    """Print a line, with the codes of characters that cannot be seen, such as those that move a cursor. Names
    come from files of which nobody knows yet whether they are good."""
    line = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")


# zlib.error and RuntimeError: content that is damaged, or packed as no export is.
UNREADABLE = (OSError, zipfile.BadZipFile, zlib.error, EOFError, LookupError, TypeError, ValueError, RuntimeError)


def main(arguments: list[str]) -> int:
    """Verify the files, print a sentence for each, and return the exit status."""
    if len(arguments) < 2:
        sys.stdout.write(__doc__ or "")
        return 2
    status, (first, *paths) = 0, arguments
    try:
        if len(first) == 64:
            keys = read_keys(first)
        else:
            with open(first, encoding="utf-8") as file:
                keys = read_keys(file.read())
    except (OSError, ValueError, EvidenceFault) as error:
        say(f"{first}: {error}")
        return 1
    others: dict[str, Any] = {}
    heads = [one for one in paths if HEAD.fullmatch(one)]
    # Not each shell does it.
    files = [name for one in paths if one not in heads for name in (sorted(glob.glob(one)) or [one])]
    for path in files:
        try:
            say(f"{path}: {check_file(path, keys, others, heads)}")
        except (EvidenceFault, AttributeError, *UNREADABLE) as error:
            status = 1
            say(f"{path}: NOT GOOD. {error}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
