"""Files by the API: sent to the bucket by a signed form, named in a comment, had by a signed address."""

from __future__ import annotations

import urllib3

from portal.objects.object_store import UploadForm
from tenants.api_keys.scopes import Scope
from tests.attachments.conftest import send
from tests.support.api_client import ApiClient, api_client
from tests.support.world import World

CONTENT = b"%PDF-1.7 of the API"


def sent(client: ApiClient, name: str = "report.pdf") -> str:
    begun = client.send("/files", {"name": name, "size": len(CONTENT)})
    assert begun.status_code == 201, begun.content
    told = begun.json()
    assert send(UploadForm(told["url"], told["fields"]), CONTENT)[0] == 204
    return str(told["id"])


def test_a_file_is_sent_and_named_in_a_comment_and_had_again(world: World) -> None:
    world.tickets("acme", 1)
    client = api_client(world)
    file_id = sent(client)
    made = client.send("/tickets/1/comments", {"body": "See it.", "files": [file_id]})
    assert made.status_code == 201
    listed = {
        "id": file_id,
        "name": "report.pdf",
        "size": len(CONTENT),
        "type": "application/pdf",
        "state": "unscanned",
    }
    assert made.json()["files"] == [listed]
    assert client.ask("/tickets/1/files").json() == {"data": [listed]}
    url = client.ask(f"/tickets/1/files/{file_id}").json()["url"]
    assert urllib3.request("GET", url).data == CONTENT


def test_a_new_ticket_has_files(world: World) -> None:
    client = api_client(world)
    made = client.send("/tickets", {"title": "With a file", "files": [sent(client)]})
    assert made.status_code == 201
    assert [file["name"] for file in client.ask(f"/tickets/{made.json()['number']}/files").json()["data"]] == [
        "report.pdf"
    ]


def test_files_of_notes_need_the_scope_of_notes(world: World) -> None:
    world.tickets("acme", 1)
    client = api_client(world)
    file_id = sent(client)
    assert client.send("/tickets/1/notes", {"body": "Between us.", "files": [file_id]}).status_code == 201
    reader = api_client(world, Scope.TICKETS_READ, name="Reader")
    assert reader.ask("/tickets/1/files").json() == {"data": []}
    assert reader.ask(f"/tickets/1/files/{file_id}").status_code == 404
    assert client.ask(f"/tickets/1/files/{file_id}").status_code == 200


def test_what_did_not_arrive_and_what_is_another_keys_is_refused(world: World) -> None:
    world.tickets("acme", 1)
    client, other = api_client(world), api_client(world, name="Another")
    never = client.send("/files", {"name": "a.bin", "size": 5}).json()["id"]
    for file_id in (never, sent(other), "0" * 32):
        answer = client.send("/tickets/1/comments", {"body": "See it.", "files": [file_id]})
        assert (answer.status_code, answer.json()["code"]) == (409, "file_not_arrived")
    assert client.send("/files", {"name": "big.bin", "size": 25_000_001}).status_code == 422


def test_another_desks_file_is_not_found(world: World) -> None:
    world.tickets("acme", 1)
    world.tickets("globex", 1)
    theirs = api_client(world, where="globex")
    file_id = sent(theirs)
    theirs.send("/tickets/1/comments", {"body": "Ours.", "files": [file_id]})
    assert api_client(world).ask(f"/tickets/1/files/{file_id}").status_code == 404
