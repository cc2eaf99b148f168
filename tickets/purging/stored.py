"""Declare purges that are ordered or under way, and the rights that a purge needs."""

from __future__ import annotations

from typing import Final

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from delivery.queues.stored import QUEUES
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.registry import Grant, declare
from tenants.audit_trail.stored import CHAINS
from tenants.lifecycle.stored import CERTIFICATES
from tenants.tenancy.stored import DIRECTORY
from tickets.jobs.stored import JobItem

PURGES: Final = keys.part("PURGE")


class PurgeItem(JobItem):
    """The purge of a tenant, by its id. It goes when the certificate is issued.

    `state` is ordered, running or checked: nothing is left then but own tables. `phase` is a few words on what is being
    done, as they were when that was last noted. `stage` is the last one that is done,
    0 for none. `counts` is JSON: by the name of a holding, how many items were counted at first, deleted, and found
    when it was looked through again. `chains` is JSON of the ends of the audit trail's chain, "" before they are read.
    `places` are where its content lay, with spaces between. `by_id`, `by_email` and `by_origin` say who asked for it;
    `closes_at` is when its grace ended or would have ended, "" where it had none.
    """

    by_id = UnicodeAttribute(default="")
    by_email = UnicodeAttribute(default="")
    by_origin = UnicodeAttribute(default="")
    asked_at = UnicodeAttribute()
    closes_at = UnicodeAttribute(default="")
    places = UnicodeAttribute(default="")
    stage = NumberAttribute(default=0)
    counts = UnicodeAttribute(default="{}")
    chains = UnicodeAttribute(default="")


declare(
    grants=(
        Grant("lifecycle", CHAINS, ("DeleteItem",), "PurgeEndsOfChains"),
        Grant("lifecycle", QUEUES, ("DeleteItem",), "PurgeQueueSets"),
        Grant("platform", DIRECTORY, ("GetItem",), "ReadPurges", leading_keys=PURGES),
        Grant("platform", DIRECTORY, ("GetItem",), "ReadCertificates", leading_keys=CERTIFICATES),
    ),
)


declare_keys(DIRECTORY, {"purge": "PURGE, <tenant>"})
