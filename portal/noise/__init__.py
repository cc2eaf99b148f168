"""Note who asks for how much, minute by minute, so that operators see which tenant is noisy and which one suffers.

Begin with `tenant_notes.py`, which each process keeps in its memory; `noise_teller.py` writes them down,
`noise_board.py` reads those of all processes, and `metrics_line.py` says their sums to CloudWatch.
"""
