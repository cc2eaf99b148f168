"""`manage.py torture_delivery`: carries out the torture of proofs/scenarios/delivery.py."""

from proofs.harness import TortureCommand
from proofs.scenarios.delivery import Delivery

Command = TortureCommand.of(Delivery)
