"""Make the CloudFormation template from what the rooms declare.

May import `schema` and `isolation`. Begin with `template.py`; a room adds its own part through `parts.py`.
"""
