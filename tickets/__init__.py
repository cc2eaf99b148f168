"""Do what tenants come for: tickets, lists, search, dashboards, and what keeps their numbers.

Begin with `ticket/fields.py` (what a ticket is), then `desk/changing.py` (what people do with one) and
`counting/contributions.py` (what it adds to a dashboard). All packages are in docs/architecture.md.
"""
