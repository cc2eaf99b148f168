"""The portal in a real browser: a server process, Chromium, and people who click and type."""
