"""Prove what the search promises: that it finds every ticket that it should, no other, and the best ones first.

Begin with `query_proof.py`, which asks the questions; `full_text_oracle.py` is another search engine, and
`plain_recount.py` none at all: both answer the same questions from the same stored texts. `search_torture.py` tries to
make an index lose something, and `query_proof.py` says how much a very large one weighs.
"""
