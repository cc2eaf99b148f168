"""The setup of a desk: what each of its pages has to know, such as its custom fields, in one small item.

Begin with `setup.py`, which reads it with the desk itself and changes one part of it. A package that has a part adds
its attribute to `stored.py` and says itself what the text of that part means.
"""
