"""The way to queues: one connection for each role and process, shared by all threads.

As with tables, a role may send what the packages have granted it and nothing else: `call` refuses the rest before it is
sent, and on AWS the role's policy does. The client is made at first use; a forked child makes its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, ReadTimeoutError
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.parsers import ResponseParserError
from django.conf import settings

from portal import aws_session
from portal.errors import PortalError, Rejected, Throttled, Unavailable
from portal.isolation import guard
from portal.schema import registry
from portal.schema.registry import Role

LONGEST_POLL: Final = 20  # seconds; AWS, "Amazon SQS short and long polling"
_POOL: Final = 64  # connections; each thread of a worker may hold one for the length of a poll
_ATTEMPTS: Final = 3

_THROTTLES = {"OverLimit", "RequestThrottled", "Throttling", "ThrottlingException", "KmsThrottled"}
_MISSING = {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"}


class QueueConnection:
    """The way of one role to the queues."""

    def __init__(self, role: Role) -> None:
        self.role: Role = role
        self._addresses: dict[str, str] = {}

    @property
    def client(self) -> Any:
        return aws_session.client(
            "sqs",
            settings.AWS_REGION,
            settings.SQS_ENDPOINT_URL,
            parameter_validation=False,
            connect_timeout=settings.DYNAMODB_CONNECT_TIMEOUT,
            read_timeout=LONGEST_POLL + settings.DYNAMODB_READ_TIMEOUT,
            max_pool_connections=_POOL,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            tcp_keepalive=True,
        )

    def call(self, operation: str, queue: str, **params: Any) -> dict[str, Any]:
        """Send an operation to the queue of this full name.

        Raises IsolationError for what the role was not granted; Unavailable where the queue or all of SQS cannot be
        reached; Throttled; Rejected for a request that can never be taken.
        """
        self._check(operation, queue)
        with translated(operation):
            try:
                return self._send(operation, QueueUrl=self._address(queue), **params)
            except ClientError as error:
                if error.response["Error"]["Code"] in _MISSING:
                    self._addresses.pop(queue, None)  # it may come back at another address
                raise

    def create(self, queue: str, attributes: dict[str, str]) -> None:
        """Create a queue where there is none. On AWS the stack does that, and no role may."""
        with translated("CreateQueue"):
            self._send("CreateQueue", QueueName=queue, Attributes=attributes)

    def exists(self, queue: str) -> bool:
        """Tell whether there is a queue of this full name. Raises what `call` does."""
        self._check("GetQueueUrl", queue)
        try:
            with translated("GetQueueUrl"):
                self._addresses.pop(queue, None)
                self._address(queue)
        except Unavailable as error:
            if isinstance(error.__cause__, ClientError) and error.__cause__.response["Error"]["Code"] in _MISSING:
                return False
            raise
        return True

    def _check(self, operation: str, queue: str) -> None:
        action = operation.removesuffix("Batch")  # IAM has one action for an operation and its batch
        if any(
            action in grant.actions and queue.startswith(full_name(grant.name))
            for grant in registry.queue_grants(self.role)
        ):
            return
        refusal = guard.IsolationError(operation, queue, f"not granted to the role {self.role}")
        guard.report(refusal)
        raise refusal

    def _address(self, queue: str) -> str:
        if queue not in self._addresses:
            self._addresses[queue] = self._send("GetQueueUrl", QueueName=queue)["QueueUrl"]
        return self._addresses[queue]

    def _send(self, operation: str, **params: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.client._make_api_call(operation, params)
        return answer


@contextmanager
def translated(operation: str) -> Iterator[None]:
    """Raise the error of ours that stands for a library's."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        ours = translate(error, operation)
        if ours is None:
            raise
        raise ours from error


def translate(error: Exception, operation: str) -> PortalError | None:
    """Return the error of ours that stands for a library's, or None where it is a bug and should stay what it is."""
    if isinstance(error, ClientError):
        code = error.response.get("Error", {}).get("Code", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code in _THROTTLES:
            return Throttled("The queues are busy.")
        if code in _MISSING or status >= 500:
            return Unavailable(f"The queues could not answer {operation}.")
        return Rejected(f"The queues refuse {operation}: {code}.")
    if isinstance(error, ReadTimeoutError):
        return Unavailable("The queues did not answer in time.")
    if isinstance(error, BotoConnectionError | HTTPClientError | ResponseParserError):
        return Unavailable("The queues cannot be reached.")
    return None


def full_name(name: str) -> str:
    """Return the name of a queue in its account: the prefix of the tables stands in front, with dashes for its dots,
    which no queue's name may have."""
    return f"{settings.DYNAMODB_TABLE_PREFIX.replace('.', '-')}-{name}"


@cache
def queue_connection(role: Role) -> QueueConnection:
    return QueueConnection(role)


def reset() -> None:
    """Forget all clients and addresses, for tests that change the endpoint."""
    queue_connection.cache_clear()
    aws_session.reset()
