"""Make the CloudFormation template from what the rooms declare.

Begin with `template.py`; a room adds its own part through `parts.py`.
"""
