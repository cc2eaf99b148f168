"""Turn the errors of botocore into ours, once, and tell which of them pass by themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError, ReadTimeoutError
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.parsers import ResponseParserError

from portal.errors import ConditionFailed, PortalError, Reason, Throttled, TransactionRefused, Unavailable

LIBRARY_ERRORS = (BotoCoreError, ClientError)

_THROTTLES = {
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
    "LimitExceededException",
    # A single write met a transaction on the same item; a transaction sent again met its own first sending.
    "TransactionConflictException",
    "TransactionInProgressException",
}
_STAYS = {"TransactionConflictException"}  # the rule that met it decides
_UNAVAILABLE = {
    "InternalServerError",
    "InternalFailure",
    "ServiceUnavailable",
    "503",
    "500",
    # A table that is missing is a deployment that has not finished, or an engine that lost its state.
    "ResourceNotFoundException",
}
# An index of this version that is not there yet, or still being filled: tables are upgraded before the code is.
_NO_INDEX = ("does not have the specified index", "backfilling global secondary index")


def translate(error: Exception, operation: str) -> PortalError | None:
    """Return the error of ours that stands for a library's, or None where it is a bug and should stay what it is."""
    if isinstance(error, ClientError):
        response: dict[str, Any] = error.response
        code = response.get("Error", {}).get("Code", "")
        if code == "ConditionalCheckFailedException":
            return ConditionFailed("The condition of the write did not hold.", item=response.get("Item"))
        if code == "TransactionCanceledException":
            raw = response.get("CancellationReasons", [])
            reasons = [
                None if r.get("Code") in (None, "None") else Reason(r["Code"], r.get("Message", ""), r.get("Item"))
                for r in raw
            ]
            codes = {r.code for r in reasons if r}
            if codes and codes <= {"ThrottlingError", "ProvisionedThroughputExceeded"}:
                return Throttled("The database is busy.")
            return TransactionRefused(reasons)
        if code in _THROTTLES:
            return Throttled("The database is busy.")
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        text = str(response.get("Error", {}).get("Message", ""))
        if code in _UNAVAILABLE or status >= 500 or any(words in text for words in _NO_INDEX):
            return Unavailable(f"The database could not answer {operation}.")
        return None
    if isinstance(error, ReadTimeoutError):
        return Unavailable("The database did not answer in time.")
    if isinstance(error, BotoConnectionError | HTTPClientError | ResponseParserError):
        # Nobody listens, or the answer broke off or came from somebody else: a proxy, an engine that is ending.
        return Unavailable("The database cannot be reached.")
    return None


def is_denied(error: Exception) -> bool:
    """Tell whether an error of a library is a refusal by IAM."""
    code = error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else ""
    return code in ("AccessDenied", "AccessDeniedException")


def is_missing(error: Exception) -> bool:
    """Tell whether an error of ours stands for a table or a stream that is not there."""
    cause = error.__cause__
    return isinstance(cause, ClientError) and cause.response["Error"].get("Code") == "ResourceNotFoundException"


def may_pass(response: tuple[Any, dict[str, Any]] | None, error: Exception | None) -> bool:
    """Tell whether the same request may succeed a moment later: the engine is busy, slow or away.

    Takes what botocore hands to who decides about that: the answer, or the error where there was none.
    """
    if response is None:
        return isinstance(error, BotoConnectionError | HTTPClientError)
    status, code = response[0].status_code, response[1].get("Error", {}).get("Code", "")
    return code in _THROTTLES - _STAYS or status >= 500


def run(main: Callable[[], int | None]) -> NoReturn:
    """Run a program to its exit status. An error that no code of it can mend is one sentence, and status 1."""
    try:
        sys.exit(main())
    except PortalError as error:
        sys.exit(error.message)
    except NoCredentialsError:
        sys.exit(
            "No database is named. Set DYNAMODB_ENDPOINT_URL to a local engine, such as the one that `python -m "
            "examples.todo engine` starts, or give AWS credentials for Amazon DynamoDB."
        )
