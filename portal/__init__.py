"""Hold the project and a kernel that knows no feature.

Begin with `schema/keys.py` (how a key is formed), then `dynamo/store.py` (a tenant's way to items) and
`isolation/guard.py` (what each request is held against). All packages are in docs/architecture.md.
"""
