"""`manage.py torture_letters`: carries out the torture of proofs/scenarios/letter_traffic.py."""

from proofs.harness import TortureCommand
from proofs.scenarios.letter_traffic import Letters

Command = TortureCommand.of(Letters)
