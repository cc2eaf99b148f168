"""Export the evidence of a desk as one zip that an auditor verifies without us: docs/auditors.md describes its files.

The trail is written row by row as it is stored, up to the ends of the chain as they were at the beginning. Rows about
erased people are withheld: of those the file has what the desk's own page shows, with their hashes, so that the chain
can be followed through them. The manifest comes last; it names the ends of the chain and the hash of each file, and is
signed like a certificate, with the installation's key. Memory stays small for any length of the trail.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from portal import clock, spreadsheet
from portal.zip_stream import Pipe
from tenants.audit_trail import browsing, chain, recording
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.audit_trail.stored import AuditItem
from tenants.auditing import access_review
from tenants.auditing.access_review import ReviewOfTrail
from tenants.lifecycle import certificates
from tenants.tenancy.context import TenantContext

KIND: Final = "audit evidence"  # of the manifest
SCRIPT: Final = Path(__file__).with_name("verify_audit_export.py")
_PIECE: Final = 65_536  # bytes that are held before they are sent
_README: Final = """Evidence of a Pooldesk desk, for its auditor.

    python3 verify_audit_export.py pooldesk-keys.json THIS-FILE.zip

verifies all of it, with Python 3.9 or newer and nothing else. pooldesk-keys.json has the public keys: get it from the
portal, /.well-known/pooldesk-keys.json, and compare them with {published}. Rather than the script in this file use
/.well-known/verify_audit_export.py of the portal, or tenants/auditing/verify_audit_export.py of Pooldesk's source.

Keep this file: given an older one before a newer one, the script also says whether anything was changed since.

The trail is a chain in several partitions, so that many can write at the same time. Each row has the number of its
partition, its own number there, and the hash of the row before it. The fingerprint is a hash over the ends of all
partitions; a head, as the page Evidence and the monthly letter show it, is another line, which the script takes behind
the file. The export is an entry of the trail itself, so this file has one more than the page showed.

audit-trail.jsonl   each row of the audit trail as it is stored, with its hash and its place in the chain
access-review.json  who may do what, since when and by whom; access-review.csv is the same as a table
isolation-runs.json attacks on this desk that its owners ordered, and what refused them; the signed page of each
manifest.json       the ends of the chain and the hash of each file, signed
"""


# Files that packages above add to the evidence of a desk: their content by name.
MoreFiles = Callable[[TenantContext], Mapping[str, bytes]]
_more: Final[list[MoreFiles]] = []


def declare_evidence(files: MoreFiles) -> None:
    """Add files to the evidence of each desk. They may have no texts of people."""
    _more.append(files)


def export(tenant: TenantContext, *, by: Actor) -> Iterator[bytes]:
    """Record that the evidence is exported, and return the zip, made as it is taken.

    Raises Conflict where the installation has no key to sign with, and what recording a row raises.
    """
    key = certificates.signing_key()
    recording.record(
        AuditEntry(tenant.tenant_id, AuditAction.EXPORT_MADE, by, "export", "evidence", "the evidence for auditors")
    )
    ends = chain.ends_of(tenant.tenant_id)
    return _Writer(tenant, ends, lambda facts: certificates.sign(facts, key)).pieces(by)


@dataclass
class _File:
    """The size and the hash of a file, as the manifest names them."""

    bytes: int
    sha256: str


class _Writer:
    """Writes one export."""

    def __init__(self, tenant: TenantContext, ends: chain.Ends, sign: Callable[[Mapping[str, Any]], bytes]) -> None:
        self._tenant, self._ends, self._sign = tenant, ends, sign
        self._files: dict[str, _File] = {}
        self._review = ReviewOfTrail()
        self._rows = self._withheld = 0

    def pieces(self, by: Actor) -> Iterator[bytes]:
        made_at, out = clock.stamp(), Pipe()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
            for name, lines in self._contents():
                yield from self._write(archive, out, name, lines)
            manifest = {
                "kind": KIND,
                "desk": {"id": self._tenant.tenant_id, "name": self._tenant.name, "slug": self._tenant.slug},
                "made_at": made_at,
                "made_by": by.email,
                "rows": self._rows,
                "withheld": self._withheld,
                "chain": {name: {"rows": rows, "hash": last} for name, (rows, last) in self._ends.items()},
                "fingerprint": chain.fingerprint(self._ends),
                "files": {name: asdict(file) for name, file in self._files.items()},
            }
            archive.writestr("manifest.json", self._sign(manifest))
        yield out.taken()

    def _contents(self) -> Iterator[tuple[str, Iterable[bytes]]]:
        published = settings.KEYS_PUBLISHED_AT or "those that its operator gives you by another way"
        yield "README.txt", [_README.replace("{published}", published).encode()]
        yield SCRIPT.name, [SCRIPT.read_bytes()]
        yield "audit-trail.jsonl", self._trail()
        rows = [*access_review.rows_of(self._tenant, self._review)]
        yield "access-review.json", [json.dumps(rows, indent=1, ensure_ascii=False).encode()]
        cells = map(access_review.as_cells, rows)
        yield "access-review.csv", (line.encode() for line in spreadsheet.lines(access_review.COLUMNS, cells))
        for files in _more:
            yield from ((name, [content]) for name, content in files(self._tenant).items())

    def _write(self, archive: zipfile.ZipFile, out: Pipe, name: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        digest, size, held = hashlib.sha256(), 0, 0
        now = clock.now()
        entry = zipfile.ZipInfo(name, (now.year, now.month, now.day, now.hour, now.minute, now.second))
        entry.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(entry, "w", force_zip64=True) as inner:
            for piece in pieces:
                inner.write(piece)
                digest.update(piece)
                size, held = size + len(piece), held + len(piece)
                if held > _PIECE:
                    yield out.taken()
                    held = 0
        self._files[name] = _File(size, digest.hexdigest())

    def _trail(self) -> Iterator[bytes]:
        erased = ErasedPeople.parse(self._tenant.erased)
        for raw in chain.rows(self._tenant.tenant_id):
            link = chain.link_of(raw)
            if link.sequence > self._ends.get(link.partition, (0, ""))[0]:
                continue  # written since the export began
            row = browsing.row_of(AuditItem.from_raw_data(raw))
            shown = browsing.shown(row, erased)
            self._review.see(shown)
            self._rows += 1
            line: dict[str, Any] = {"row": raw}
            if shown != row:
                self._withheld += 1
                told = {"action": row.action, "actor": shown.actor, "entity": shown.entity, "at": link.at}
                of_chain = {name: getattr(link, name) for name in ("partition", "sequence", "previous", "hash")}
                line = {"withheld": told | of_chain}
            yield json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
