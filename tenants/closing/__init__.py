"""Close a desk: from then on it can only be read, and once the grace is over it may be deleted; until then, undo.

Begin with `desk_closing.py`. What deletes is `tickets/purging`.
"""
