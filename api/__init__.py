"""Let systems of tenants in: the JSON API under /api/, by the rules that the pages call.

Three packages: `edge` lets requests in and says what is wrong, `v1` has a module for each resource, and `documents`
says what they take and answer.
"""
