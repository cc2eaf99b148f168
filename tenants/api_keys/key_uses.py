"""Note when a key was last used and from where: at most once in some minutes, and once the answer has been sent.

The write waits for the end of the request, when Django closes what it has answered, so that nobody waits for it. One
that fails is forgotten: the next use is noted.
"""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import Any, Final

from django.core.signals import request_finished

from portal import clock
from portal.dynamo import platform, retry
from portal.dynamo.repository import Transaction
from portal.errors import PortalError, TransactionRefused
from tenants.api_keys.items import ApiKeyItem

log = logging.getLogger("pooldesk.api_keys")

EVERY: Final = timedelta(minutes=5)

_waiting = threading.local()


def note(key: ApiKeyItem, *, address: str) -> None:
    """Take down that a key, as just read, lets somebody in from this address, unless that was done of late."""
    if not is_of_late(key):
        _waiting.use = (key.tenant_id, key.api_key_prefix, address)


def is_of_late(key: ApiKeyItem) -> bool:
    """Tell whether a use of the key is noted that is no older than EVERY: any use since then is not noted."""
    return bool(key.last_used_at and key.last_used_at >= _before())


def write(**_: Any) -> None:
    """Write what this thread has taken down in its request. Other processes may have done that meanwhile."""
    use, _waiting.use = getattr(_waiting, "use", None), None
    if use is None:
        return
    tenant_id, prefix, address = use
    unnoted = ApiKeyItem.last_used_at.does_not_exist() | (ApiKeyItem.last_used_at < _before())
    transaction = Transaction()
    transaction.update(
        ApiKeyItem(tenant_id, prefix),
        [ApiKeyItem.last_used_at.set(clock.stamp()), ApiKeyItem.last_used_from.set(address)],
        condition=ApiKeyItem.digest.exists() & unnoted,
    )
    try:
        with retry.on_behalf_of(tenant_id):
            platform.transact(transaction)
    except TransactionRefused:
        return
    except PortalError as error:
        log.warning("That a key of tenant %s was used is not written down: %s", tenant_id, error.message)


def _before() -> str:
    return clock.stamp(clock.now() - EVERY)


# Once for the process, whoever imports this first.
request_finished.connect(write, dispatch_uid="tenants.api_keys.key_uses")
