"""Run the proofs from the command line."""
