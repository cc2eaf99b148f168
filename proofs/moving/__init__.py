"""Try to lose or double something by moving a desk while people work: `manage.py torture_move`.

Begin with `move_torture.py`, then `move_child.py`, which is what its processes do.
"""
