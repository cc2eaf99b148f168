"""Prove what the product promises, on a running engine. A development app: the product runs without it.

`isolation` attacks the separation of tenants, `counting` tries to make the aggregates wrong,
`delivery` to lose what leaves the desks.
"""
