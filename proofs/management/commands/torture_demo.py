"""`manage.py torture_demo`: carries out the torture of proofs/scenarios/outage.py."""

from proofs.harness import TortureCommand
from proofs.scenarios.outage import Outage

Command = TortureCommand.of(Outage)
