"""Let a ticket rest until a moment or until its requester answers. Begin with `snoozing.py`."""
