"""Make requests to the database that no tenant may make, and some that each may."""
