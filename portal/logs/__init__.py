"""Logs that one search finds together: an id for each request, which goes along to whatever the request causes, and a
line of JSON for each record. Begin with `request_id.py`; `json_lines.py` says what may stand in a line.
"""
