"""Keep shared to-do lists for many tenants, on the kernel alone: `python -m examples.todo demo`.

Begin with `stored.py`. The settings are given here, before a model is declared. The kernel's registry of tables is one
for a process: run beside the product, the lists would become a part of its template and policies.
"""

from portal import standalone

standalone.configure("Todo")
