"""`manage.py torture_stream`: carries out the torture of proofs/scenarios/stream.py."""

from proofs.scenarios.stream import Stream, StreamCommand


class Command(StreamCommand):
    help = Stream.help
