"""Store the rows of the audit trail and the ends of its chain: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tenants.audit_trail.tables import AUDIT, CHAINS


class AuditItem(Item):
    """One row of the audit trail. `before` and `after` are JSON objects of strings, "" if there is nothing to say.

    `partition`, `sequence`, `previous` and `hash` are its place in the chain; see tenants/audit_trail/chain.py.
    """

    table = AUDIT

    tenant_id = UnicodeAttribute(hash_key=True)
    timestamp_event_id = UnicodeAttribute(range_key=True)
    tenant_actor = UnicodeAttribute()
    tenant_entity = UnicodeAttribute()
    action = UnicodeAttribute()
    actor_id = UnicodeAttribute()
    actor_email = UnicodeAttribute(default="")
    origin = UnicodeAttribute(default="")
    entity_type = UnicodeAttribute()
    entity_id = UnicodeAttribute()
    entity_name = UnicodeAttribute(default="")
    before = UnicodeAttribute(default="")
    after = UnicodeAttribute(default="")
    partition = UnicodeAttribute()
    sequence = NumberAttribute()
    previous = UnicodeAttribute(default="")
    hash = UnicodeAttribute()


class ChainItem(Item):
    """The end of one partition of a tenant's audit chain: the number of its rows, and the hash of the last one."""

    table = CHAINS

    tenant_id = UnicodeAttribute(hash_key=True)
    partition = UnicodeAttribute(range_key=True)
    sequence = NumberAttribute()
    hash = UnicodeAttribute()
