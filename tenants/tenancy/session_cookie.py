"""Write and read the session cookie: three ids under one signature, which say what to read and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from django.core import signing


@dataclass(frozen=True)
class Ids:
    """The three ids of a session cookie. `tenant_id` is "" before a tenant is chosen."""

    session_key: str
    user_id: str
    tenant_id: str = ""


def _signer() -> signing.Signer:
    # Made at use: the key may be missing while settings are being checked, and differs between tests.
    return signing.Signer(salt="pooldesk.session-cookie")


def write(ids: Ids) -> str:
    return _signer().sign(f"{ids.session_key}.{ids.user_id}.{ids.tenant_id}")


def read(value: str) -> Ids | None:
    """Return the ids, or None for a cookie that we did not sign."""
    if len(value) > 300:
        return None
    try:
        session_key, user_id, tenant_id = _signer().unsign(value).split(".")
    except (signing.BadSignature, ValueError):
        return None
    return Ids(session_key, user_id, tenant_id)
