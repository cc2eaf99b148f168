"""Visit every address of the portal with what belongs to somebody else."""
