"""Make the CloudFormation template from what the packages declare.

Begin with `template.py`; a package adds its own part through `parts.py`.
"""
