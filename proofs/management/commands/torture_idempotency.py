"""`manage.py torture_idempotency`: carries out the torture of proofs/scenarios/replay.py."""

from proofs.harness import TortureCommand
from proofs.scenarios.replay import Replay

Command = TortureCommand.of(Replay)
