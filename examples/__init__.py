"""Show the kernel at work without the product: short examples, each a command, and a whole small application, `todo`.

Begin with `first_table.py`. Nothing here imports anything but the kernel; portal/README.md describes that.
"""
