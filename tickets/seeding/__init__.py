"""Write a demonstration that is the same for the same seed.

May import `importing` and below. Begin with `demonstration.py`.
"""
