"""Find tickets by their words: an index on DynamoDB alone, made of immutable segments, that proposes tickets.

The text of a ticket itself decides what is shown. Begin with `tokenizer.py` for what a word is, and
with `results.py` for what is found; `index/segments.py` says how the index lies in the table.
"""
