"""Find tickets by their words: an index on DynamoDB alone, made of immutable segments, that proposes tickets.

The text of a ticket itself decides what is shown. Begin with `ticket_search.py` for the way of a query;
`tokenizer.py` says what a word is, `index/segments.py` how the index lies in the table.
"""
