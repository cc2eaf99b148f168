"""A server of the name system on loopback, which knows the records that a test gives it."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
from django.test import override_settings


class _Questions(socketserver.BaseRequestHandler):
    server: NameServer

    def handle(self) -> None:
        data, socket = self.request
        query = dns.message.from_wire(data)
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA | dns.flags.AA
        (question,) = query.question
        kind, host = dns.rdatatype.to_text(question.rdtype), question.name.to_text().rstrip(".").lower()
        self.server.asked.append((host, kind))
        texts = self.server.records.get((host, kind), [])
        if texts:
            quoted = [f'"{text}"' if kind == "TXT" else text for text in texts]
            answer.answer.append(dns.rrset.from_text(question.name, 60, "IN", kind, *quoted))
        elif all(known != host for known, _ in self.server.records):
            answer.set_rcode(dns.rcode.NXDOMAIN)
        socket.sendto(answer.to_wire(), self.client_address)


class NameServer(socketserver.ThreadingUDPServer):
    """Answers of `records`, by host and kind, and keeps what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Questions)
        self.records: dict[tuple[str, str], list[str]] = {}
        self.asked: list[tuple[str, str]] = []


@contextmanager
def name_server() -> Iterator[NameServer]:
    """A name server that checks of domains ask while the block lasts."""
    with NameServer() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            with override_settings(DNS_SERVERS=[f"127.0.0.1:{server.server_address[1]}"]):
                yield server
        finally:
            server.shutdown()
