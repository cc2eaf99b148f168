"""Speak WebAuthn with a browser: what it is asked to sign, and whether what it answers is right.

A challenge is signed and given to the page; nothing is stored for it. That it is used once follows from its time: a
passkey keeps that of the last challenge that it signed, and takes none of that time or before (`factor_checking.py`).

Source: W3C, "Web Authentication: Level 3", 7.1 and 7.2, whose steps python-fido2 takes; the counter is ours.
"""

from __future__ import annotations

import ipaddress
import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from django.core import signing
from django.utils.translation import gettext
from fido2.server import Fido2Server
from fido2.webauthn import (
    AttestationConveyancePreference,
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from portal.errors import Invalid
from tenants.sign_in.accounts import User
from tenants.sign_in.stored import passkey_digest

LIFETIME: Final = 3600  # seconds of a challenge: a page to sign in may stand open for a while
LIMIT: Final = 20_000  # characters of a browser's answer
ANYBODY: Final = ""  # for whom a challenge is made before it is known who signs in
_SALT: Final = "tenants.second-factors.challenge"
_NAME: Final = "Pooldesk"
_NEED: Final = UserVerificationRequirement.REQUIRED
_T = TypeVar("_T")


@dataclass(frozen=True)
class PasskeySite:
    """The origin of the portal as browsers see it, `https://desk.example.com`."""

    origin: str

    @property
    def host(self) -> str:
        return urlsplit(self.origin).hostname or ""

    @property
    def has_passkeys(self) -> bool:
        """Tell whether browsers make passkeys for this site: they do for names, and not for network addresses."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return True
        return False

    def server(self) -> Fido2Server:
        entity = PublicKeyCredentialRpEntity(id=self.host, name=_NAME)
        plain = AttestationConveyancePreference.NONE  # which maker an authenticator is of is no matter here
        return Fido2Server(entity, plain, verify_origin=lambda origin: origin == self.origin)


@dataclass(frozen=True)
class Assertion:
    """A signature that is right: whose passkey it is, the counter of its authenticator, when its challenge was made."""

    user_id: str
    uses: int
    challenged_at: int


@dataclass(frozen=True)
class _Challenge:
    value: bytes
    made_at: int  # microseconds since the epoch


def creation(site: PasskeySite, user: User, known: list[str]) -> dict[str, Any]:
    """Return what a browser is asked to make a passkey of: `publicKey` as JSON, and the `challenge` to send back.

    `known` are the credentials that the person has, in hex: an authenticator that has one of them makes no other.
    """
    challenge = _new_challenge()
    entity = PublicKeyCredentialUserEntity(name=user.email, id=user.id.encode(), display_name=user.name)
    options, _ = site.server().register_begin(
        entity,
        [_credential(text) for text in known],
        resident_key_requirement=ResidentKeyRequirement.REQUIRED,
        user_verification=_NEED,
        challenge=challenge.value,
    )
    return _asked(dict(options), challenge, user.id)


def created(site: PasskeySite, user: User, answer: str, token: str) -> str:
    """Return the credential, in hex, that a browser made for this person. Raises Invalid."""
    challenge = _challenge_of(token, user.id)
    data = _read(lambda: site.server().register_complete(_state(challenge), _json(answer)).credential_data)
    if data is None:
        raise Invalid(gettext("The browser made no passkey."))
    return bytes(data).hex()


def passkey_id(credential: str) -> str:
    """Return the id that stands for a credential in addresses and keys."""
    return passkey_digest(_credential(credential).credential_id)


def request(site: PasskeySite) -> dict[str, Any]:
    """Return what a browser is asked to sign, with whichever passkey of this site the person chooses; as `creation`."""
    challenge = _new_challenge()
    options, _ = site.server().authenticate_begin(user_verification=_NEED, challenge=challenge.value)
    return _asked(dict(options), challenge, ANYBODY)


def signed(site: PasskeySite, answer: str, token: str, credential_of: Callable[[str, str], str | None]) -> Assertion:
    """Check a browser's signature. `credential_of` gives, for a person's id and a passkey's, the credential in hex.

    Raises Invalid. The caller has to check that the counter has grown and that the challenge is new.
    """
    challenge, answered = _challenge_of(token, ANYBODY), _json(answer)
    response = _read(lambda: AuthenticationResponse.from_dict(answered))
    user_id = (response.response.user_handle or b"").decode(errors="replace")
    credential = credential_of(user_id, passkey_digest(response.raw_id))
    if credential is None:
        raise Invalid(gettext("This passkey is not known here."))
    known = [_credential(credential)]
    _read(lambda: site.server().authenticate_complete(_state(challenge), known, response))
    return Assertion(user_id, response.response.authenticator_data.counter, challenge.made_at)


def _new_challenge() -> _Challenge:
    return _Challenge(secrets.token_bytes(32), time.time_ns() // 1000)


def _asked(options: Mapping[str, Any], challenge: _Challenge, subject: str) -> dict[str, Any]:
    token = signing.dumps([challenge.value.hex(), challenge.made_at, subject], salt=_SALT)
    return {"publicKey": options["publicKey"], "challenge": token}


def _challenge_of(token: str, subject: str) -> _Challenge:
    try:
        value, made_at, made_for = signing.loads(token, salt=_SALT, max_age=LIFETIME)
    except (signing.BadSignature, ValueError) as error:
        raise Invalid(gettext("This page was open for too long. Try again.")) from error
    if made_for != subject:
        raise Invalid(gettext("This was asked of somebody else."))
    return _Challenge(bytes.fromhex(value), made_at)


def _state(challenge: _Challenge) -> dict[str, Any]:
    state: dict[str, Any] = Fido2Server._make_internal_state(challenge.value, _NEED)
    return state


def _json(answer: str) -> dict[str, Any]:
    found = _read(lambda: json.loads(answer if len(answer) <= LIMIT else ""))
    if not isinstance(found, dict):
        raise Invalid(gettext("The browser's answer cannot be read."))
    return found


def _credential(text: str) -> AttestedCredentialData:
    return AttestedCredentialData(bytes.fromhex(text))


def _read(parse: Callable[[], _T]) -> _T:
    """Take what a browser sent apart: whatever fails at that is the sender's."""
    try:
        return parse()
    except Exception as error:
        raise Invalid(gettext("This passkey was not accepted.")) from error
