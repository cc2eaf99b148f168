"""Keep answers that are ready to be inserted into comments: texts with placeholders, and what they change with them.

Begin with `answer_changes.py`. `filling.py` puts a ticket's values into a text, and `answer_uses.py` counts.
"""
