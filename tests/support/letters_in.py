"""Letters come in as in production, without processes: into the bucket, told of in a queue, filed from a desk's own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from email.message import EmailMessage

import pytest
from django.conf import settings

from delivery.queues import queue_readers
from delivery.queues.message_handling import MessageHandler
from delivery.queues.queue_transport import QueueTransport
from portal import aws_session, clock
from portal.objects.object_store import ObjectStore
from tests.support import engine_memory
from tests.support.world import World
from tickets.letters import arrival, ledger, posting, stored
from tickets.letters.envelope import Envelope
from tickets.letters.stored import LETTERS_QUEUE, LedgerRow

DOMAIN = settings.MAIL_DOMAIN


@contextlib.contextmanager
def mail() -> Iterator[None]:
    """The bucket and the queues, empty: an engine with another world has no queues any more, but still its objects."""
    queues = f"queues-{settings.DYNAMODB_TABLE_PREFIX}-{settings.DELIVERY_QUEUES}"
    engine_memory.continued(queues, _create_queues, always=True)
    _empty_bucket()
    arrival._turns = arrival._Turns()  # what came in a test before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrival, "AT_ONCE", 100)  # letters of a test come faster than the pace of a flood
        yield


def _create_queues() -> None:
    QueueTransport().create_all()
    queue_readers.create_missing()


def _empty_bucket() -> None:
    """Delete the objects of the test before, which has the same desks."""
    client = aws_session.client("s3", settings.AWS_REGION, settings.S3_ENDPOINT_URL, s3={"addressing_style": "path"})
    for found in client.list_objects_v2(Bucket=settings.MAIL_BUCKET).get("Contents", ()):
        client.delete_object(Bucket=settings.MAIL_BUCKET, Key=found["Key"])


def letter(
    *,
    sender: str = "Zoe Customer <zoe@customer.example>",
    to: str = f"acme@{DOMAIN}",
    subject: str = "The printer is on fire",
    body: str = "It burns since noon.",
    message_id: str | None = "<1@customer.example>",
    **headers: str,
) -> bytes:
    """A letter that somebody wrote by hand."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = sender, to, subject
    if message_id:
        message["Message-ID"] = message_id
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(body)
    return message.as_bytes()


def post(raw: bytes, *to: str, sender: str = "zoe@customer.example", **verdicts: str) -> str:
    """Bring a letter in; it waits in the queue."""
    to = to or (f"acme@{DOMAIN}",)
    return posting.deliver(raw, sender=sender, recipients=to, verdicts=posting.TRUSTED | verdicts)


def tell_again(name: str, *to: str, sender: str = "zoe@customer.example") -> None:
    """Bring the notification of a letter once more, as SQS does where nobody has deleted it."""
    came = Envelope(name, sender, to or (f"acme@{DOMAIN}",), clock.stamp(), dict(posting.TRUSTED))
    posting.tell(came, stored.INCOMING + name)


def drain() -> None:
    """Work until all queues are empty, as the workers do."""
    while queue_readers.read(LETTERS_QUEUE, wait=0):
        pass
    work()


def work() -> list[str]:
    """File what is in the desks' queues, and return what came of each message."""
    transport, handler, did = QueueTransport(), MessageHandler(), []
    for queue in range(transport.queues):
        if engine_memory.is_empty(transport.queue_name(queue)):  # quicker than to receive nothing
            continue
        while received := transport.receive(queue, wait=0, visibility=0):
            for one in received:
                handled = handler.handle(one)
                did.append(handled.did)
                if handled.again is not None:
                    transport.send(queue, [handled.again], delay=0)
                transport.delete(queue, [one.handle])
    return did


def come_in(raw: bytes, *to: str, **how: str) -> str:
    """Bring a letter in and file it. Returns the name of its object."""
    name = post(raw, *to, **how)
    drain()
    return name


def rows(world: World, where: str = "acme") -> list[LedgerRow]:
    """The ledger of a desk, the newest first."""
    repository = world.context("alice" if where == "acme" else "charlie", where).repository
    return ledger.letters(repository, limit=100)[0]


def incoming() -> list[str]:
    """What nobody has handed on yet."""
    return [found.key for found in ObjectStore("delivery").list(stored.INCOMING)]


def unclaimed() -> list[str]:
    return [found.key for found in ObjectStore("delivery").list(stored.UNCLAIMED)]


def objects(world: World, where: str = "acme") -> list[str]:
    """The letters of a desk as they came."""
    tenant_id = world.tenants[where].tenant_id
    return [found.key for found in ObjectStore("tenant", tenant_id).list(stored.raw_prefix(tenant_id))]
