"""Let requests of the API in by their key, answer each once, and say what is wrong in one form.

Begin with `edge_middleware.py`, then `routing.py`.
"""
