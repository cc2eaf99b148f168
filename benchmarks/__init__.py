"""Measure what pages cost at 1,000 to 100,000 tickets: `python -m benchmarks`, or `make bench`. See README.md."""
