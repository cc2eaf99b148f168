"""Run tickets from the command line."""
