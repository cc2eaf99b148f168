"""`manage.py torture_reshard`: carries out the torture of proofs/scenarios/reshard.py."""

from proofs.harness import TortureCommand
from proofs.scenarios.reshard import Reshard

Command = TortureCommand.of(Reshard)
