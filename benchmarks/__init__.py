"""What pages cost at 1,000, 10,000 and 100,000 tickets: `python -m benchmarks`, or `make bench`. See README.md."""
