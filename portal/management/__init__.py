"""Give the commands their common manners: one sentence for an error, progress, a normal end on Ctrl-C."""
