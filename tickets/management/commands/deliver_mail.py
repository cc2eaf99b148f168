"""`manage.py deliver_mail FILE --to ADDRESS`: brings a letter in from a file."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from email import policy
from email.parser import BytesHeaderParser
from email.utils import parseaddr
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost
from tickets.letters import arrival, desk_addresses, envelope, posting


def _verdict(text: str) -> tuple[str, str]:
    name, _, status = text.partition("=")
    if name.lower() not in envelope.VERDICTS or status.upper() not in (envelope.PASS, envelope.FAIL, envelope.GRAY):
        raise ArgumentTypeError(f"must be one of {', '.join(envelope.VERDICTS)}, =, and PASS, FAIL or GRAY: {text!r}")
    return name.lower(), status.upper()


class Command(PortalCommand):
    costs = cost(get="slug, tenant", reads=4)
    help = (
        "Bring a letter in from a file (- for standard input), as if it had come by mail to the given addresses. They "
        "decide which desks get it, not what the letter says."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", help="the letter, with its headers, as mail programs save it (.eml)"
        )
        parser.add_argument("--to", required=True, action="append", metavar="ADDRESS", help="a recipient; repeatable")
        parser.add_argument("--sender", metavar="ADDRESS", help="the envelope's sender (the address in From)")
        parser.add_argument(
            "--verdict",
            type=_verdict,
            action="append",
            default=[],
            metavar="NAME=STATUS",
            help="what the receiving server found, such as dmarc=FAIL; repeatable (PASS for each)",
        )

    def work(self, options: dict[str, Any]) -> None:
        raw = self._read(options["file"])
        for address in options["to"]:
            if desk_addresses.desk_of(address) is None:
                raise CommandError(f"No desk takes letters at {address}.")
        sender = options["sender"] if options["sender"] is not None else _sender_in(raw)
        verdicts = posting.TRUSTED | dict(options["verdict"])
        name = posting.deliver(raw, sender=sender, recipients=options["to"], verdicts=verdicts)
        self.stdout.write(
            f"The letter came in as {name}; a worker files it. The desk's list of letters has what became of it."
        )

    def _read(self, file: str) -> bytes:
        try:
            raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
        if not raw.strip():
            raise CommandError(f"{file} is empty.")
        if len(raw) > arrival.MOST_BYTES:
            raise CommandError(
                f"{file} has more than {arrival.MOST_BYTES // 1_000_000} MB, which no mail server takes."
            )
        return raw


def _sender_in(raw: bytes) -> str:
    try:
        headers = BytesHeaderParser(policy=policy.compat32).parsebytes(raw[:65_536])
        return parseaddr(str(headers.get("From", "")))[1]
    except (LookupError, ValueError):
        return ""
