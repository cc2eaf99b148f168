"""Make the templates beside the installation's: of one tenant's own tables, and of a site at which silos lie.

That of a tenant is deployed before the tenant is placed there: a placement makes the tables that are missing and leaves
those that exist. They are kept and restorable like those of all, and encrypted with a key of the tenant's own unless
the installation's is given. The consumers of their streams belong to the stack of the installation. Its functions,
queues, roles and key are parameters here, with the same names.

That of a site has the key of the tables that are made there.
"""

from __future__ import annotations

import copy
from typing import Final

from portal.deployment import data_events
from portal.deployment.parts import arn, text_parameter
from portal.deployment.template import (
    BY_NAME,
    KEY,
    OWN_KEY,
    PRODUCTION,
    Json,
    logical_id,
    sub,
    table_key,
    template,
)
from portal.schema import keys, registry

_PARAMETERS: Final = ("Environment", "TablePrefix", "Encryption")
_ROLE_ARNS: Final = [f"{role}Arn" for role in BY_NAME.values()]
_GIVEN_KEY: Final = f"{KEY}Arn"
_MAKES_KEY: Final = "HasTenantKey"
_TENANT_KEY: Final = "TenantKey"
_SITE_CALLERS: Final = "RoleArns"


def placed_template(tenant_id: str) -> Json:
    """Return the template of this tenant's tables as data. Raises ValueError for what is no tenant's id."""
    whole = template()
    tables = {logical_id(table): table for table in registry.placed_tables()}
    resources = {name: copy.deepcopy(whole["Resources"][name]) for name in tables}
    for name, table in tables.items():
        properties = resources[name]["Properties"]
        properties["TableName"] = sub(f"${{TablePrefix}}.{keys.tenant(tenant_id)}.{table.name}")
        key = {"Fn::If": [_MAKES_KEY, arn(_TENANT_KEY), {"Ref": _GIVEN_KEY}]}
        properties["SSESpecification"]["KMSMasterKeyId"]["Fn::If"][1] = key
    resources[_TENANT_KEY] = _key_of(tenant_id)
    lent = {name: _lent(name) for name in sorted([*_ROLE_ARNS, _GIVEN_KEY])}
    no_key = {"Fn::Equals": [{"Ref": _GIVEN_KEY}, ""]}
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Transform": "AWS::LanguageExtensions",
        "Description": f"Pooldesk: the tables of the tenant {tenant_id}",
        "Parameters": {name: whole["Parameters"][name] for name in _PARAMETERS} | lent,
        "Rules": {"KeyHasCallers": _callers_rule(no_key)},
        "Conditions": {name: whole["Conditions"][name] for name in sorted([PRODUCTION, OWN_KEY])}
        | {_MAKES_KEY: {"Fn::And": [{"Condition": OWN_KEY}, no_key]}},
        "Resources": resources,
        "Outputs": {f"{_TENANT_KEY}Arn": {"Condition": _MAKES_KEY, "Value": arn(_TENANT_KEY)}},
    }


def _key_of(tenant_id: str) -> Json:
    key = table_key([{"Ref": name} for name in _ROLE_ARNS])
    key["Properties"]["Description"] = f"Encrypts the DynamoDB tables of the tenant {tenant_id}"
    return key | {"Condition": _MAKES_KEY}


def _callers_rule(no_key: Json) -> Json:
    """Refuse a stack whose key nobody could use, before anything is made."""
    makes = {"Fn::And": [{"Fn::Equals": [{"Ref": "Encryption"}, "customer-managed"]}, no_key]}
    return {
        "RuleCondition": makes,
        "Assertions": [
            {
                "Assert": {"Fn::Not": [{"Fn::Equals": [{"Ref": name}, ""]}]},
                "AssertDescription": f"A key of the tenant's own needs {name} of the installation's stack",
            }
            for name in _ROLE_ARNS
        ],
    }


def site_template() -> Json:
    """Return the template of a site's account: its key for tables, and the record of requests where it is asked for."""
    whole = template()
    key = table_key({"Ref": _SITE_CALLERS})
    del key["Condition"]
    callers = {
        "Type": "CommaDelimitedList",
        "Description": "The ARNs of the roles that SILOS names for this site, which may read and write its tables",
    }
    names = ("Environment", "TablePrefix")
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Transform": "AWS::LanguageExtensions",
        "Description": "Pooldesk: the encryption key of a site, and the record of requests to its tables",
        "Parameters": {name: whole["Parameters"][name] for name in names}
        | {_SITE_CALLERS: callers}
        | data_events.PARAMETER,
        "Conditions": {PRODUCTION: whole["Conditions"][PRODUCTION]} | data_events.CONDITIONS,
        "Resources": {KEY: key} | data_events.resources(),
        "Outputs": {_GIVEN_KEY: {"Description": "table_key_arn of the site in SILOS", "Value": arn(KEY)}},
    }


def _lent(name: str) -> Json:
    return text_parameter(f"{name} of the installation's stack, where there is one", "")
