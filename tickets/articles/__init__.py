"""Keep the help centre: articles in Markdown with drafts and versions, in ordered sections, public or for the desk.

Begin with `article_changes.py`. `catalogue.py` is what lists, the search and suggestions read of published articles.
"""
