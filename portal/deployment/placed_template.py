"""Make the template of one tenant's own tables: those of the installation's template under the tenant's names.

It is deployed before the tenant is placed there: who places a tenant makes what is missing and leaves what is there. So
its tables are encrypted, kept and restorable like those of all. What reads their streams belongs to the stack of the
installation, whose functions, queues and key are parameters here, called as they are called there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from portal.deployment.stack_roles import sub
from portal.deployment.template import OWN_KEY, PRODUCTION, Json, logical_id, template
from portal.schema import keys, placed_names

_PARAMETERS: Final = ("Environment", "TablePrefix", "Encryption", "WorkerService")
_MAPPING: Final = "AWS::Lambda::EventSourceMapping"


def placed_template(tenant_id: str) -> Json:
    """Return the template of this tenant's tables as data. Raises ValueError for what is no tenant's id."""
    whole = template()
    tables = {logical_id(table): table for table in placed_names.placed_tables()}
    resources = {name: copy.deepcopy(whole["Resources"][name]) for name in tables}
    for name, table in tables.items():
        resources[name]["Properties"]["TableName"] = sub(f"${{TablePrefix}}.{keys.tenant(tenant_id)}.{table.name}")
    for name, resource in whole["Resources"].items():
        if resource["Type"] == _MAPPING and resource["Properties"]["EventSourceArn"]["Fn::GetAtt"][0] in tables:
            resources[name] = copy.deepcopy(resource)
    conditions = {PRODUCTION, OWN_KEY, *(r["Condition"] for r in resources.values() if "Condition" in r)}
    lent = {name: _lent(name) for name in sorted(set(_borrow(resources, {*tables, *_PARAMETERS})))}
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Transform": "AWS::LanguageExtensions",
        "Description": f"Pooldesk: the tables of the tenant {tenant_id}",
        "Parameters": {name: whole["Parameters"][name] for name in _PARAMETERS} | lent,
        "Conditions": {name: whole["Conditions"][name] for name in sorted(conditions)},
        "Resources": resources,
    }


def _borrow(value: Any, here: set[str]) -> Iterator[str]:
    """Turn what names a resource of the installation's stack into a parameter, and yield the parameter's name."""
    if isinstance(value, dict):
        for name, member in value.items():
            if isinstance(member, dict) and isinstance(member.get("Fn::GetAtt"), list):
                resource, attribute = member["Fn::GetAtt"]
                if resource not in here:
                    value[name] = {"Ref": resource + attribute}
                    yield resource + attribute
            elif isinstance(member, dict) and not member.get("Ref", "AWS::").startswith("AWS::"):
                if member["Ref"] not in here:
                    yield member["Ref"]
            else:
                yield from _borrow(member, here)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            held = {"": member}
            yield from _borrow(held, here)
            value[index] = held[""]


def _lent(name: str) -> Json:
    return {"Type": "String", "Description": f"{name} of the installation's stack, where there is one", "Default": ""}
