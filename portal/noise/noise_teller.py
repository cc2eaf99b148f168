"""Write down what this process did, once a minute, in a thread beside its work: at most one item a minute.

A process that did nothing for any tenant writes nothing. Where the database is away, a few minutes are kept and told
later. What costs capacity is noted by itself: the meter says what each request to DynamoDB was charged.
"""

from __future__ import annotations

import json
import logging
import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Final

from django.conf import settings

from portal.dynamo import meter, retry
from portal.dynamo.store import Store
from portal.errors import PortalError
from portal.isolation import guard
from portal.noise import keys, metrics_line
from portal.noise.items import NoiseItem
from portal.noise.noise_tally import NoiseTally
from portal.noise.tenant_notes import MINUTE, MinuteNotes, TenantNotes
from portal.schema.keys import joined, whole_number
from portal.schema.registry import Role

log = logging.getLogger("pooldesk.noise")

KEPT_SECONDS: Final = 6 * 3600
OTHERS, NOBODY = "others", "nobody"
_TURN_SECONDS: Final = 5.0
_LATEST: Final = 30.0  # seconds after a minute, by which processes spread what they write

Gauges = Callable[[], Mapping[str, float]]


class NoiseTeller:
    """Tell what the notes of one process say. `kind` names such processes, and `role` is what it writes as.

    `gauges` returns what is measured beside that, by the name of a metric.
    """

    def __init__(self, notes: TenantNotes, *, kind: str, role: Role, gauges: Gauges = dict) -> None:
        self._notes, self._kind, self._role, self._gauges = notes, kind, role, gauges
        self._me, self._told = uuid.uuid4().hex, 0
        self._away = False

    def turn(self, *, last: bool = False) -> int:
        """Tell of the minutes that are over, `last` of the one that is not as well. Return how many were told."""
        minutes = self._notes.all() if last else self._notes.over()
        for told, notes in enumerate(minutes):
            try:
                self._tell(notes)
            except PortalError as error:
                if not self._away:
                    log.warning("What was done cannot be written down, it is tried again: %s", error.message)
                self._away = True
                return told
            self._away = False
            self._notes.told(notes)
            metrics_line.say(self._kind, notes.total(), at=notes.minute * MINUTE)
        return len(minutes)

    def measure(self) -> None:
        """Say what is measured now."""
        if gauges := self._gauges():
            metrics_line.say_gauges(self._kind, gauges, at=int(time.time()))

    def _tell(self, notes: MinuteNotes) -> None:
        tallies = {tenant_id: tally.stored() for tenant_id, tally in notes.tenants.items()}
        tallies |= {OTHERS: notes.others.stored(), NOBODY: notes.nobody.stored()}
        self._told += 1
        item = NoiseItem(
            keys.notes_of(notes.minute),
            joined(self._kind, self._me, whole_number(self._told, "a count")),
            tallies=json.dumps(tallies, separators=(",", ":")),
            expires_at=int(time.time()) + KEPT_SECONDS,
        )
        Store(self._role).put(item)


class _CallListener:
    """Notes what each request to DynamoDB was charged, for the tenant on whose behalf it was sent."""

    def charged(self, reads: float, writes: float) -> None:
        if reads or writes:
            note(guard.acted_for() or retry.tenant(), NoiseTally(reads=reads, writes=writes))

    def throttled(self) -> None:
        note(guard.acted_for() or retry.tenant(), NoiseTally(throttles=1))


_lock = threading.Lock()
_notes = TenantNotes()
_teller: NoiseTeller | None = None


def note(tenant_id: str, tally: NoiseTally) -> None:
    """Add what was done for a tenant now, "" for none. Nothing is kept where nobody tells it."""
    if _teller is not None:
        _notes.note(tenant_id, tally)


def start(kind: str, role: Role, *, gauges: Gauges = dict, beside: bool = True) -> None:
    """Begin to take notes, once, and to tell them; does nothing where NOISE_NOTED is off.

    Without `beside` there is no thread, and somebody calls `turn` now and then: a Lambda function has no time between
    two calls.
    """
    if _teller is None and settings.NOISE_NOTED:
        with _lock:
            _start(NoiseTeller(_notes, kind=kind, role=role, gauges=gauges), beside=beside)


def _start(teller: NoiseTeller, *, beside: bool) -> None:
    global _teller
    if _teller is None:
        _teller, meter.listener = teller, _CallListener()
        if beside:
            threading.Thread(target=_run, args=(teller,), name="noise", daemon=True).start()


def turn() -> None:
    """Tell of the minutes that are over, where somebody takes notes."""
    if _teller is not None:
        _teller.turn()


def stop() -> None:
    """Tell what is left, and take no more notes."""
    global _teller
    with _lock:
        ending, _teller = _teller, None
        meter.listener = None
    if ending is not None:
        ending.turn(last=True)


def _run(teller: NoiseTeller) -> None:
    after, minute = random.uniform(0, _LATEST), int(time.time() // MINUTE)  # noqa: S311  # no secret
    while _teller is teller:
        time.sleep(_TURN_SECONDS)
        now = time.time() - after
        if int(now // MINUTE) == minute:
            continue
        minute = int(now // MINUTE)
        try:
            teller.turn()
            teller.measure()
        except Exception:  # whatever it is, the process has other work to do
            log.exception("What was done could not be told")


def _forget() -> None:
    global _lock, _notes, _teller
    _lock, _notes, _teller = threading.Lock(), TenantNotes(), None
    meter.listener = None


os.register_at_fork(after_in_child=_forget)
