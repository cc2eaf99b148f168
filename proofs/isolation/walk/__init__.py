"""Walk through the portal and the API over HTTP as people and systems that must not see another tenant's things.

`http_attack.py` makes the requests and judges the answers, `watch.py` looks at what they make the portal ask for, and
`portal_tricks.py` and `api_tricks.py` have the ways to try it.
"""
