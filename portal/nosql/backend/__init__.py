"""A Django database backend without a database."""
