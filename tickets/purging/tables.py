"""Say what whoever purges may do beside the tables of the tenants, and what operators may who ask for a purge."""

from __future__ import annotations

from delivery.queues.stored import QUEUES
from portal.schema.registry import Grant, declare
from tenants.audit_trail.stored import CHAINS
from tenants.lifecycle.stored import CERTIFICATES
from tenants.tenancy.stored import DIRECTORY
from tickets.purging.keys import PURGES

declare(
    grants=(
        Grant("lifecycle", CHAINS, ("DeleteItem",), "PurgeEndsOfChains"),
        Grant("lifecycle", QUEUES, ("DeleteItem",), "PurgeQueueSets"),
        Grant("platform", DIRECTORY, ("GetItem",), "ReadPurges", leading_keys=PURGES),
        Grant("platform", DIRECTORY, ("GetItem",), "ReadCertificates", leading_keys=CERTIFICATES),
    ),
)
