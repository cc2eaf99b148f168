"""Declare the parts of the template that are there for an image: network, web service, secrets and dashboard."""

from __future__ import annotations

from portal.deployment.parts import StackPart, declare
from portal.hosting import network, secret_store, service_dashboard, web_service

declare(
    StackPart(
        service_dashboard.PART,
        resources=lambda logical_id, roles: {
            **network.resources(),
            **secret_store.resources(logical_id, roles),
            **web_service.resources(logical_id, roles),
            **service_dashboard.resources(logical_id, roles),
        },
        parameters=network.PARAMETERS | web_service.PARAMETERS,
        rules=web_service.RULES,
        conditions=network.CONDITIONS | web_service.CONDITIONS,
        outputs=secret_store.OUTPUTS | web_service.OUTPUTS,
    )
)
