"""Write a demonstration that is the same for the same seed.

Begin with `demonstration.py`.
"""
