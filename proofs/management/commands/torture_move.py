"""`manage.py torture_move`: carries out the torture of proofs/scenarios/move.py."""

from proofs.harness import TortureCommand
from proofs.scenarios.move import DeskMove

Command = TortureCommand.of(DeskMove)
