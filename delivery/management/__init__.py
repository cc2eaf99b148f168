"""Run what leaves the desk from the command line."""
