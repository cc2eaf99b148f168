"""Each Lambda function of the template in a process with exactly the environment that the template gives it: it does
its work, with no error in its log, and asks for nothing that its role may not do.

Beside that environment the process has what AWS itself sets, and the embedded engine's address in place of AWS's.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from delivery.outbox import outbox_rows, publisher, stored
from delivery.outbox.destinations import ATTEMPTS
from delivery.outbox.outbox_rows import Work
from delivery.outbox.stored import OUTBOX, OutboxItem
from delivery.queues.queue_transport import Message, QueueTransport
from delivery.webhooks import endpoints
from delivery.webhooks.stored import EndpointItem
from portal import clock
from portal.isolation import guard, policies
from portal.schema.registry import Table
from tenants.audit_trail.recording import SYSTEM
from tenants.sign_in import suppressed_addresses
from tenants.tenancy import tenant_directory
from tests.mail.test_ses import NORA, bounce
from tests.moving import moves
from tests.support import function_process
from tests.support.endpoints import endpoint
from tests.support.folding import Follower, numbers
from tests.support.mailing import OUTBOX as OUTBOX_BACKEND
from tests.support.outbox import rows, subscribe
from tests.support.stacks import ACCOUNT, COMMITTED, WITH_FUNCTION, Json, Stack, committed, statements_in
from tests.support.world import World
from tickets.desk import creating
from tickets.moving import move_requests
from tickets.ticket.stored import TICKETS

SCHEDULED = {"source": "aws.events", "detail-type": "Scheduled Event"}
NOWHERE = "https://localhost/in"  # is asked for nothing: it is no host of the internet
ERRORS = re.compile(r'"level":"(?:ERROR|CRITICAL)","logger":"[^"]*","message":"(?!A delivery is dead)[^"]*')
ENGINES_ACCOUNT = "000000000000"


@pytest.fixture(scope="module")
def unzipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the header of the template puts into the zip, but for the packages: nothing else is there to be imported."""
    code = tmp_path_factory.mktemp("zip")
    (sentence,) = re.findall(r"The zip holds (.+?) and what", COMMITTED.read_text())
    for folder in re.findall(r"(\w+)/", sentence):
        shutil.copytree(settings.BASE_DIR / folder, code / folder)  # compiled as it is, so that nobody does it again
    return code


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    own = {"EmailUrl": f"filemail:///{tmp_path}/mail", "TablePrefix": settings.DYNAMODB_TABLE_PREFIX}
    by_ses, by_file = (Stack(committed(), **WITH_FUNCTION | own | {"MailService": by}) for by in ("ses", "smtp"))
    # The function that hears of bounces is there only with SES, which no engine has.
    by_file.resources = by_ses.resources | by_file.resources
    return by_file


Invoke = Callable[..., list[Any]]


@pytest.fixture
def invoke(stack: Stack, unzipped: Path) -> Invoke:
    """Gives the answers of a function to some events."""
    return partial(invoked, stack, unzipped)


@pytest.fixture
def transport(world: World) -> Iterator[QueueTransport]:
    with override_settings(DELIVERY_QUEUES=32):
        transport = QueueTransport()
        transport.create_all()
        yield transport


def invoked(stack: Stack, code: Path, name: str, *events: Json) -> list[Any]:
    function = stack.properties(f"{name}Function")
    environ = {
        # What AWS sets, and where the engine is.
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(code),
        "AWS_REGION": settings.AWS_REGION,
        "AWS_ACCESS_KEY_ID": "pooldesk",
        "AWS_SECRET_ACCESS_KEY": "pooldesk",
        "DYNAMODB_ENDPOINT_URL": settings.DYNAMODB_ENDPOINT_URL,
        # What the template sets.
        **{name: arn_of(value) for name, value in function["Environment"]["Variables"].items()},
        # What it would read in AWS Secrets Manager.
        "AWS_SECRETS": "",
        "SECRET_KEY": settings.SECRET_KEY,
    }
    done = subprocess.run(
        [sys.executable, "-P", function_process.__file__],
        input=json.dumps({"handler": function["Handler"], "events": events}),
        env=environ,
        cwd=code,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert ERRORS.findall(done.stderr) == [], done.stderr
    said = json.loads(done.stdout)
    assert refused(stack, function["Role"].removesuffix(".Arn"), said["asked"]) == []
    answers: list[Any] = said["answers"]
    return answers


def arn_of(value: str) -> str:
    role = value.removesuffix(".Arn")
    return value if role == value else f"arn:aws:iam::{ENGINES_ACCOUNT}:role/pooldesk-{role}"


def refused(stack: Stack, role: str, asked: list[Json]) -> list[str]:
    """What a function asked in its own name, and its role may not. What it asked in a tenant's, the guard has held
    against the tenant role's policy."""
    policy = policy_of(stack, role)
    with override_settings(AWS_ACCOUNT_ID=ACCOUNT):
        return [
            f"{request.action} on {request.resource}"
            for one in asked
            if not one["as_tenant"]
            for request in requests(one["service"], one["operation"], one["params"])
            if not policy.allows(request)
        ]


def policy_of(stack: Stack, role: str) -> policies.Policy:
    attached = [
        one["Properties"]["PolicyDocument"]
        for one in stack.resources.values()
        if one["Type"] == "AWS::IAM::ManagedPolicy" and role in one["Properties"]["Roles"]
    ]
    statements = [
        {**one, "Condition": {}} if one.get("Sid") == "MapOwnStreams" else one for one in statements_in(attached)
    ]  # `test_infra_functions.py` looks at that condition
    return policies.Policy({"Version": "2012-10-17", "Statement": statements})


def requests(service: str, operation: str, params: Json) -> list[policies.Request]:
    match service:
        case "dynamodb":
            return guard.requests_of(operation, params, None)
        case "dynamodbstreams" if "ShardIterator" in params:
            return []  # it was made for a stream that was asked for
        case "dynamodbstreams":
            stream = params.get("StreamArn") or policies.table_arn(params["TableName"]) + "/stream/2026"
            return [policies.Request(f"dynamodb:{operation}", stream.replace(ENGINES_ACCOUNT, ACCOUNT))]
        case "sqs":
            name = params.get("QueueName") or params["QueueUrl"].rpartition("/")[2]
            operation = operation.removesuffix("Batch")  # IAM knows no batches
            return [policies.Request(f"sqs:{operation}", f"arn:aws:sqs:{settings.AWS_REGION}:{ACCOUNT}:{name}")]
        case "lambda":
            return [policies.Request(f"lambda:{operation}", "*")]
        case "sts":
            return [policies.Request(f"sts:{operation}", f"{params['RoleArn'].rpartition('-')[2]}.Arn")]
    raise AssertionError(f"{service}: {operation}")


def from_the_stream(table: Table) -> Json:
    follower = Follower(table)
    records = [{**record.raw, "eventSourceARN": follower.arn} for record in follower.new()]
    read: Json = json.loads(json.dumps({"Records": records}, default=lambda moment: moment.timestamp()))
    return read | {"shardId": follower.shard_id, "eventSourceARN": follower.arn}


def from_the_queue(row: OutboxItem) -> Json:
    """What Lambda brings of a row with one event for one destination."""
    (member,) = row.open
    index, destination = publisher.member_parts(member)
    message = Message(stored.row_parts(row.event_id)[0], row.event_id, row.timestamp, index, destination)
    record = {
        "messageId": "m1",
        "receiptHandle": "h1",
        "body": message.body(),
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1763780000000"},
        "eventSourceARN": f"arn:aws:sqs:{settings.AWS_REGION}:{ACCOUNT}:Pooldesk-delivery-05",
    }
    return {"Records": [record]}


def invited(world: World) -> OutboxItem:
    """The mail that invites Nora, as it stands in the outbox."""
    with override_settings(EMAIL_BACKEND=OUTBOX_BACKEND):
        world.browser("alice", "acme").send("/desk/invitations/", {"addresses": NORA, "role": "agent"})
    (row,) = (one for one in rows() if one.private)
    return row


def received(transport: QueueTransport) -> list[Message]:
    found = []
    for queue in (1, 2, 4, 7):  # those of the tenant
        found += [one.message for one in transport.receive(queue, wait=0)]
    return found


def test_every_function_of_the_template_is_tried_here(stack: Stack) -> None:
    functions = {name for name, one in stack.resources.items() if one["Type"] == "AWS::Lambda::Function"}
    tried = {f"{name}Function" for name in ("Worker", "Dispatch", "Sweep", "Delivery", "Bounces", "Lifecycle")}
    assert functions - {"RotationFunction"} == tried, "tests/hosting tries the rotation"


def test_the_stream_worker_counts_and_tells_how_far_it_is(world: World, invoke: Invoke) -> None:
    world.tickets("acme", 2)
    counted, told = invoke("Worker", from_the_stream(TICKETS), SCHEDULED)
    assert counted == {"state": {}, "batchItemFailures": []}
    assert told["as_of"]
    assert numbers(world.context("alice", "acme"))["open.normal"] == 2


def test_the_function_of_the_lifecycle_role_discards_an_old_copy_that_an_operator_has_done_with(
    world: World, invoke: Invoke
) -> None:
    world.tickets("acme", 1)
    moves.move(world, moves.BRIDGE)
    moves.move(world, moves.POOL, grace_days=0)
    move_requests.discard(tenant_directory.get(moves.id_of(world)), by=SYSTEM)
    assert invoke("Lifecycle", SCHEDULED) == [{"ended": 1}]
    assert moves.last(world).state == "done"


def test_the_dispatcher_sends_what_is_new(world: World, transport: QueueTransport, invoke: Invoke) -> None:
    subscribe(world, "acme")
    creating.create(world.context("alice", "acme"), title="Printer")
    (answer,) = invoke("Dispatch", from_the_stream(OUTBOX))
    assert answer == {"batchItemFailures": []}
    assert [message.destination for message in received(transport)] == ["ep_one"]


def test_the_sweeper_sends_what_is_due(world: World, transport: QueueTransport, invoke: Invoke) -> None:
    subscribe(world, "acme")
    creating.create(world.context("alice", "acme"), title="Printer")
    (row,) = rows()
    outbox_rows.put_off(row, "2026-01-01T00:00:00.000000Z")
    assert invoke("Sweep", SCHEDULED) == [{"sent": 1}]
    assert len(received(transport)) == 1


def test_the_last_attempt_of_a_delivery_pauses_its_endpoint_and_its_owners_are_told(
    world: World, transport: QueueTransport, invoke: Invoke, tmp_path: Path
) -> None:
    alice = world.context("alice", "acme")
    item, _ = endpoint(alice, types=("ticket.created",))
    fails = [EndpointItem.url.set(NOWHERE), EndpointItem.failing_since.set("2026-01-01T00:00:00.000000Z")]
    alice.repository.update(EndpointItem(item.tenant_id, item.endpoint_id), fails)
    creating.create(world.context("alice", "acme"), title="Printer")
    (row,) = rows()
    for _ in range(ATTEMPTS - 1):
        outbox_rows.failed(Work(alice.repository, row, 0, item.endpoint_id), next_at=clock.stamp())
    invitation = invited(world)
    assert invoke("Delivery", from_the_queue(row), from_the_queue(invitation)) == [{"batchItemFailures": []}] * 2
    assert endpoints.find(alice.repository, item.endpoint_id).state == endpoints.PAUSED
    (mail,) = (one for one in rows() if one.private)
    assert f"https://desk.example.com/acme/desk/settings/webhooks/{item.endpoint_id}/" in mail.private
    (letter,) = (tmp_path / "mail").iterdir()
    assert f"To: {NORA}" in letter.read_text()


def test_what_bounced_is_noted_and_shown_at_the_invitation(world: World, invoke: Invoke) -> None:
    row = invited(world)
    tags = {"tenant": [world.tenants["acme"].tenant_id], "about": [row.subject.replace("/", "_")]}
    record = {"messageId": "m1", "body": json.dumps(bounce(timestamp=row.timestamp, tags=tags))}
    assert invoke("Bounces", {"Records": [record]}) == [{"batchItemFailures": []}]
    assert suppressed_addresses.of([NORA])[NORA].kind == "bounced"
    (shown,) = world.browser("alice", "acme").get("/desk/invitations/").context["pending"]
    assert shown["unreached"]["why"]


def test_lambda_may_read_what_it_reads_for_a_function_in_the_name_of_its_role(stack: Stack) -> None:
    """AWS makes no mapping without these rights; `execution role` is its word for them."""
    mappings = [one["Properties"] for one in stack.resources.values() if one["Type"].endswith("EventSourceMapping")]
    for mapping in mappings:
        role = stack.properties(mapping["FunctionName"])["Role"].removesuffix(".Arn")
        source, _, kind = mapping["EventSourceArn"].partition(".")
        for asked in of_a_queue(stack, source) if kind == "Arn" else of_a_stream(stack, source):
            assert policy_of(stack, role).allows(asked), asked
    assert len(mappings) == 32 + 3


def of_a_queue(stack: Stack, name: str) -> list[policies.Request]:
    queue = f"arn:aws:sqs:{settings.AWS_REGION}:{ACCOUNT}:{stack.properties(name)['QueueName']}"
    return [policies.Request(f"sqs:{o}", queue) for o in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")]


def of_a_stream(stack: Stack, table: str) -> list[policies.Request]:
    prefix = f"arn:aws:dynamodb:{settings.AWS_REGION}:{ACCOUNT}:table"
    stream = f"{prefix}/{stack.properties(table)['TableName']}/stream/2026"
    operations = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
    return [policies.Request(f"dynamodb:{operation}", stream) for operation in operations]
