"""`manage.py torture_search`: carries out the torture of proofs/scenarios/search.py."""

from proofs.harness import TortureCommand
from proofs.scenarios.search import SearchTorture

Command = TortureCommand.of(SearchTorture)
