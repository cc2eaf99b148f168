"""A small mail server for development, on this machine alone: what it takes is brought in as Amazon SES would do.

Source: aiosmtpd, "Concrete" (handlers), 1.4.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from aiosmtpd.controller import Controller

from portal.errors import PortalError
from tickets.letters import arrival, desk_addresses, posting

log = logging.getLogger("pooldesk.mail")

TAKEN: Final = "250 Message accepted for delivery"
_NO_DESK: Final = "550 5.1.1 No desk has this address"
_LATER: Final = "451 4.3.0 The letter could not be stored; try again in a moment"


class Receiver:
    """Takes letters for the desks. Methods have the names that aiosmtpd calls."""

    def __init__(self, said: Callable[[str], object] = lambda line: None) -> None:
        self._said = said

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        """Take a recipient that is a desk's."""
        try:
            desk = await _beside(partial(desk_addresses.desk_of, address))
        except PortalError as error:
            log.warning("A recipient could not be looked up: %s", error.message)
            return _LATER
        if desk is None:
            return _NO_DESK
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        """Take the letter."""
        deliver = partial(
            posting.deliver, bytes(envelope.content), sender=envelope.mail_from or "", recipients=envelope.rcpt_tos
        )
        try:
            name = await _beside(deliver)
        except PortalError as error:
            log.warning("A letter could not be taken: %s", error.message)
            return _LATER
        self._said(f"A letter of {len(envelope.content):,} bytes to {', '.join(envelope.rcpt_tos)} came in as {name}.")
        return TAKEN


async def _beside(work: Callable[[], Any]) -> Any:
    """Do what waits for the stores beside the loop that serves all connections."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


def controller(host: str, port: int, *, said: Callable[[str], object] = lambda line: None) -> Controller:
    """Return the server, which is not started yet."""
    return Controller(
        Receiver(said),
        hostname=host,
        port=port,
        data_size_limit=arrival.MOST_BYTES,
        enable_SMTPUTF8=True,
        decode_data=False,
        ident="Pooldesk development mail server",
    )
