"""Keep what waits for a moment in one index, and call the function that it waits for when the moment has come.

Begin with `due.py`: a rule adds a row to its own transaction, and a package registers who is called. `due_worker.py`
reads the rows that are due and calls; it runs beside the stream of the tickets.
"""
