"""Say what the API takes and answers: its schema, made from the code of its routes.

Begin with `openapi.py`.
"""
