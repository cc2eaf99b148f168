"""Kill the processes of a whole portal while people write: nothing that was acknowledged may be lost or doubled.

Begin with `outage_trial.py` (what is done and judged), then `persistent_people.py` (what a person does when
no page comes).
"""
