"""The development receiver is for this machine: no page of the internet reaches it through a browser here."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator

import pytest

from delivery.webhooks import development_receiver
from delivery.webhooks.development_receiver import Receiving

HERE = ("127.0.0.1", "localhost")


@pytest.fixture
def state() -> Receiving:
    return Receiving(secrets=["whsec_known"])


@pytest.fixture
def port(state: Receiving) -> Iterator[int]:
    with development_receiver.server(0, state, render=lambda shown: f"{len(shown.arrivals)} arrived") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def ask(port: int, host: str, method: str, path: str, body: str = "") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, path, body.encode(), {"Host": host})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.mark.parametrize("name", HERE)
def test_it_shows_what_arrived_under_a_name_of_this_machine(name: str, port: int, state: Receiving) -> None:
    host = f"{name}:{port}"
    assert ask(port, host, "POST", "/hooks", "{}") == (200, "200\n")
    assert ask(port, host, "GET", "/") == (200, "1 arrived")
    assert ask(port, host, "POST", "/", "status=503")[0] == 303
    assert state.status == 503


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost.evil.example", "[::1]", ""],
)
def test_a_name_that_only_leads_to_this_machine_is_refused_and_changes_nothing(
    host: str, port: int, state: Receiving
) -> None:
    host = host.format(port=port)
    assert ask(port, host, "GET", "/") == (421, "")
    for path in ("/", "/hooks"):
        assert ask(port, host, "POST", path, "status=503&secret=whsec_other") == (421, "")
    assert (state.status, state.secrets, list(state.arrivals)) == (200, ["whsec_known"], [])


def test_it_listens_on_loopback_alone(port: int, state: Receiving) -> None:
    with development_receiver.server(0, state, render=lambda shown: "") as server:
        assert server.server_address[0] == "127.0.0.1"
