"""Find tickets by their words: an index on DynamoDB alone proposes tickets, and the stored text of each decides.

Begin with `ticket_search.py` for the way of a query.

| concept | meaning | module |
|---|---|---|
| term | a folded word of a text; words of internal notes, tags and requesters are terms of their own | `tokenizer.py` |
| posting | one byte for a ticket that has a term: in which places, and how much it says | `index/postings.py` |
| fragment | the terms of one text of a ticket | `index/fragments.py` |
| block, segment | sorted terms with postings, in items of some KB; an immutable run of blocks | `index/segments.py` |
| directory | the items that a search reads first: new postings, and the headers of segments | `stored.py` |
| indexing | each batch of the stream adds its postings | `index/indexing.py` |
| merging | small segments become large ones, and nobody misses anything | `index/merging.py`, `index/publishing.py` |
| rebuild, check | the index is made anew from the texts, or compared with them | `index_rebuild.py`, `index_check.py` |
| query | what somebody typed | `search_query.py` |
| lookup | the words that the index is asked for, and what it has of them | `index_lookup.py` |
| search | the order of the reads, and the page | `ticket_search.py` |
| match, rank, snippet | what a text decides: whether, how well, and what is shown | `text_match.py` and others |
| suggestion | tickets, tags, people and other spellings while somebody types | `suggesting.py` |
"""
