"""Read the report of a mail server that a letter of ours did not arrive (RFC 3464, and Exim's header)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from portal.mailing.letter_headers import Headers, address, message_ids, read_head, readable
from portal.mailing.mime import MimePart

_STATUSES: Final = frozenset({"message/delivery-status", "message/global-delivery-status"})
_ORIGINALS: Final = frozenset({"message/rfc822", "message/global", "text/rfc822-headers", "message/global-headers"})
_ACTIONS: Final = frozenset({"failed", "delayed", "delivered", "relayed", "expanded"})
_RECIPIENTS_LIMIT: Final = 100
_SEARCHED: Final = 200_000  # bytes of a part that are looked at
_MESSAGE_ID: Final = re.compile(rb"(?im)^[ \t>]{0,10}message-id:[ \t]{0,10}(?:\r?\n[ \t]{1,10})?(<[^<>\s]{3,500}>)")
_BLANK_LINE: Final = re.compile(rb"\n\r?\n")
_STATUS: Final = re.compile(r"[245]\.\d{1,3}\.\d{1,3}")


class DeliveryReport(NamedTuple):
    """A report that a letter of ours was delivered late, or not at all."""

    recipient: str
    status: str  # of RFC 3463, such as 5.1.1
    original_message_id: str
    action: str = "failed"  # or delayed, delivered, relayed, expanded
    reason: str = ""  # in the words of the mail server

    @property
    def has_failed(self) -> bool:
        """True where the letter will not arrive."""
        return self.action == "failed"


def report_of(root: MimePart) -> DeliveryReport | None:
    """Return the report in a letter, None where it holds none. Of several recipients the first failure counts."""
    leaves = list(root.leaves())
    found = [one for part in leaves if part.type in _STATUSES for one in _recipients(part.content)]
    if found:
        best = next((one for one in found if one.has_failed), found[0])
        return best._replace(original_message_id=_original(leaves))
    failed = address(root.headers.raw("x-failed-recipients")).address
    if failed:
        return DeliveryReport(failed, "5.0.0", _original(leaves))
    return None


def _recipients(content: bytes) -> list[DeliveryReport]:
    """Return a report for each recipient: blocks of headers follow each other, the first is about all of them."""
    blocks = [block for block in _BLANK_LINE.split(content[:_SEARCHED]) if block.strip()][: _RECIPIENTS_LIMIT + 1]
    found = [_recipient(read_head(block, 0, len(block))[0]) for block in blocks]
    return [one for one in found if one is not None]


def _recipient(headers: Headers) -> DeliveryReport | None:
    # The original recipient is the address that we wrote to; the final one may be where it was forwarded.
    said = headers.raw("original-recipient") or headers.raw("final-recipient")
    recipient = (
        address(said.rpartition(";")[2]).address or address(headers.raw("final-recipient").rpartition(";")[2]).address
    )
    if not recipient:
        return None
    action = headers.raw("action").lower()
    status = _STATUS.search(headers.raw("status"))
    return DeliveryReport(
        recipient=recipient,
        status=status[0] if status else "",
        original_message_id="",
        action=action if action in _ACTIONS else "failed",
        reason=readable(headers.raw("diagnostic-code").partition(";")[2])[:500],
    )


def _original(leaves: list[MimePart]) -> str:
    for part in leaves:
        if part.type in _ORIGINALS:
            headers = read_head(part.content.lstrip(b"\r\n"), 0, len(part.content))[0]
            if found := message_ids(headers.raw("message-id")):
                return found[0]
    for part in leaves:
        if part.type.startswith("text/") and (match := _MESSAGE_ID.search(part.content[:_SEARCHED])):
            return match[1].decode("utf-8", "replace")
    return ""
