"""The whole service on AWS: what the template adds around the tables for an image of the portal, and the commands that
create, upgrade and remove a stack.

Begin with `web_service`.
"""
