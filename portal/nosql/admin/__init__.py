"""Run Django's own admin over items, with pieces that replace what expects SQL. How to use them: docs/admin.md.

The package knows no feature and no project. A project decides in subclasses of `DynamoAdminSite` (who may come in, how
a change is committed, where a history is read) and of `DynamoAdmin`.
"""

from portal.nosql.admin.changelist import DynamoChangeList, InputFilter
from portal.nosql.admin.options import DynamoAdmin, ObjectAction
from portal.nosql.admin.site import AuditedChange, DynamoAdminSite, Notice

__all__ = [
    "AuditedChange",
    "DynamoAdmin",
    "DynamoAdminSite",
    "DynamoChangeList",
    "InputFilter",
    "Notice",
    "ObjectAction",
]
