"""Print the IAM policies of the to-do lists' tenant role, and ask them: `python -m examples.tenant_policy`.

They follow from the declared tables. `managed` divides `document` into policies that are small enough for IAM. The
kernel's evaluator answers as IAM does, so a test can ask it.
"""

from __future__ import annotations

import json

from examples.todo import stored
from portal.isolation import policies

ACME, GLOBEX = "a" * 32, "b" * 32


def allows(acting: str, key: str) -> bool:
    """Tell whether the credentials of the tenant that acts may read this partition key of the to-dos."""
    policy = policies.Policy(policies.document("tenant"))
    resource = policies.table_arn(stored.TODOS.full_name)
    return policy.allows(policies.Request("dynamodb:GetItem", resource, (key,), tag=acting))


def main() -> None:
    for policy in policies.managed("tenant"):
        print(json.dumps(policy, indent=2))
    key = stored.list_key(ACME, "groceries")
    for name, tenant_id in (("Acme", ACME), ("Globex", GLOBEX)):
        print(f"{name} {'may' if allows(tenant_id, key) else 'may not'} read {key}")


if __name__ == "__main__":
    main()
