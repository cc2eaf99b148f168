"""`manage.py torture_stream`: carries out the torture of proofs/scenarios/stream.py."""

from proofs.harness import TortureCommand
from proofs.scenarios.stream import Stream

Command = TortureCommand.of(Stream)
