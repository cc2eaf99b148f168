"""Hold the project and a kernel that knows no feature.

The kernel's rooms, from the bottom: `schema` (how keys, tables and rights are declared), `isolation` (what holds the
declarations against each request), `dynamo` (the only way to items), `streams` (who follows a table's changes),
`deployment` (the same declarations as CloudFormation), `nosql` (Django without SQL), `engines` (local engines for
development) and `web` (what every page shares). Begin with `schema/keys.py`, then `dynamo/repository.py`.
"""
