"""Do what tenants come for: tickets, lists, dashboards, and what keeps their numbers.

From the bottom: `ticket` (what a ticket is), `counting` (what maintains the aggregates), `verification` (recounts
them), `desk` (one ticket and lists of them), `handover`, `dashboards` (the pages that show the aggregates),
`importing`, `seeding`, `admin`.
"""
