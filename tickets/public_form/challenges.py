"""Ask for a proof of work with each public form, so that a flood of forms costs its sender and no stranger's service.

A challenge is signed for one desk, with the time and a one-time id. Its proof is a counter whose SHA-256 together with
the challenge begins with so many zero bits. The number of bits grows with what a network and a desk get: one more for
each doubling. A browser without JavaScript sends no proof: it has to wait before it sends, and may send less.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass
from typing import Final

from django.core import signing

from portal import plain_text
from portal.dynamo.store import Condition
from portal.errors import ConditionFailed
from tenants.sign_in import attempt_limits
from tenants.sign_in.attempt_limits import AttemptLimit
from tenants.tenancy.context import TenantContext
from tickets.public_form.stored import SentFormItem, sent

LEAST_BITS: Final = 16  # some 65,000 tries: a fraction of a second in a browser
MOST_BITS: Final = 23
LIFETIME: Final = 12 * 3600  # seconds for which a page may stay open
UNPROVED_SECONDS: Final = 10  # that a page is open at least before it is sent without a proof
_KEPT: Final = 24 * 3600  # seconds for which a one-time id is remembered, longer than a challenge lives
_CLOCKS: Final = 5  # seconds by which clocks of processes may differ

PROVED_OF_NETWORK: Final = 20  # forms in a window of SIGN_IN_WINDOW seconds
UNPROVED_OF_NETWORK: Final = 3
PROVED_OF_DESK: Final = 300
UNPROVED_OF_DESK: Final = 30
_FREE_OF_NETWORK: Final = 4  # forms before the difficulty grows
_FREE_OF_DESK: Final = 40


@dataclass(frozen=True)
class Challenge:
    """A challenge that we signed. `nonce` is its one-time id."""

    text: str
    nonce: str
    bits: int
    issued_at: float

    @property
    def age(self) -> float:
        """Return its age in seconds."""
        return time.time() - self.issued_at

    @property
    def wait(self) -> int:
        """Return the seconds until the form may be sent without a proof."""
        return max(0, round(UNPROVED_SECONDS - self.age))

    def is_proved_by(self, proof: str) -> bool:
        """Tell whether a proof, a counter in up to 12 digits, solves it."""
        if plain_text.whole_number(proof, digits=12) is None:
            return False
        digest = hashlib.sha256(f"{self.text}.{proof}".encode()).digest()
        return int.from_bytes(digest, "big") >> (256 - self.bits) == 0


def issue(desk: TenantContext, *, bits: int) -> Challenge:
    nonce, issued_at = secrets.token_hex(16), int(time.time())
    text = _signer(desk).sign(f"{nonce}.{bits}.{issued_at}")
    return Challenge(text, nonce, bits, issued_at)


def read(desk: TenantContext, text: str) -> Challenge | None:
    """Return a challenge that we issued for this desk and that has not run out; None for any other text."""
    if len(text) > 200:
        return None
    try:
        nonce, bits, issued_at = _signer(desk).unsign(text).split(".")
        challenge = Challenge(text, nonce, int(bits), int(issued_at))
    except (signing.BadSignature, ValueError):
        return None
    return challenge if -_CLOCKS <= challenge.age <= LIFETIME else None


def _signer(desk: TenantContext) -> signing.Signer:
    return signing.Signer(salt=f"tickets.public-form.{desk.tenant_id}")


def bits_for(desk: TenantContext, *, address: str) -> int:
    """Return the difficulty for a network address now: one BatchGetItem."""
    of_network, of_desk = attempt_limits.counted(_limits(desk, address, is_proved=True))
    grown = int(of_network / _FREE_OF_NETWORK).bit_length() + int(of_desk / _FREE_OF_DESK).bit_length()
    return min(LEAST_BITS + grown, MOST_BITS)


def count(desk: TenantContext, *, address: str, is_proved: bool) -> int:
    """Count a form of a network address; return the minutes to wait where there were too many, 0 where it may go on.

    A form without a proof counts among all and among those without. One that is refused counts for nothing further:
    nobody uses up what all networks have together by forms that are not taken.
    """
    of_network, of_desk = _limits(desk, address, is_proved=True)
    stages: list[list[AttemptLimit]] = [[of_network], [of_desk]]
    if not is_proved:
        of_unproved, of_desk_unproved = _limits(desk, address, is_proved=False)
        stages = [[of_network, of_unproved], [of_desk_unproved], [of_desk]]
    waits = (attempt_limits.begin(stage).wait_minutes for stage in stages)  # one after the other
    return next((minutes for minutes in waits if minutes), 0)


def _limits(desk: TenantContext, address: str, *, is_proved: bool) -> tuple[AttemptLimit, AttemptLimit]:
    network = attempt_limits.network_of(address)
    of_network, of_desk = (PROVED_OF_NETWORK, PROVED_OF_DESK) if is_proved else (UNPROVED_OF_NETWORK, UNPROVED_OF_DESK)
    kind = "form" if is_proved else "form without proof"
    return (
        AttemptLimit(f"{kind}, network", f"{desk.tenant_id} {network}", of_network),
        AttemptLimit(f"{kind}, desk", desk.tenant_id, of_desk),
    )


def spend(desk: TenantContext, challenge: Challenge, digest: str) -> bool:
    """Use up a challenge for a form of this digest: one conditional write. False where another form has used it.

    The same form may come again, where an answer was lost or a process died before the ticket was made.
    """
    item = SentFormItem(desk.tenant_id, sent(challenge.nonce), digest=digest, expires_at=int(time.time()) + _KEPT)
    is_free: Condition = SentFormItem.part.does_not_exist() | (SentFormItem.digest == digest)
    try:
        desk.repository.put(item, condition=is_free)
    except ConditionFailed:
        return False
    return True
