"""A passkey in software: answers what a browser would, and what none should."""

from __future__ import annotations

import json
import secrets
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2.cose import ES256
from fido2.utils import sha256, websafe_decode, websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

FLAG = AuthenticatorData.FLAG


class SoftPasskey:
    """One credential for one site. `counts` says whether it has a counter, as security keys do and phones do not."""

    def __init__(self, *, origin: str = "http://testserver", site: str = "testserver", counts: bool = False) -> None:
        self.origin, self.site, self.counts = origin, site, counts
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = secrets.token_bytes(16)
        self.user_handle = b""
        self.uses = 0

    def create(self, asked: dict[str, Any], *, verified: bool = True) -> dict[str, str]:
        """The form fields with which a browser answers the options of a creation."""
        options = asked["publicKey"]
        self.user_handle = websafe_decode(options["user"]["id"])
        public = ES256.from_cryptography_key(self.key.public_key())
        credential = AttestedCredentialData.create(Aaguid(b"\0" * 16), self.id, public)
        flags = FLAG.UP | FLAG.AT | (FLAG.UV if verified else FLAG(0))
        data = AuthenticatorData.create(sha256(self.site.encode()), flags, self._count(), credential)
        client = self._client_data(CollectedClientData.TYPE.CREATE, options)
        made = AttestationObject.create("none", data, {})
        return self._fields(asked, client, {"attestationObject": websafe_encode(made)})

    def sign(self, asked: dict[str, Any], *, verified: bool = True) -> dict[str, str]:
        """The form fields with which a browser answers the options of a request."""
        flags = FLAG.UP | (FLAG.UV if verified else FLAG(0))
        data = AuthenticatorData.create(sha256(self.site.encode()), flags, self._count())
        client = self._client_data(CollectedClientData.TYPE.GET, asked["publicKey"])
        signature = self.key.sign(data + client.hash, ec.ECDSA(hashes.SHA256()))
        answer = {
            "authenticatorData": websafe_encode(data),
            "signature": websafe_encode(signature),
            "userHandle": websafe_encode(self.user_handle),
        }
        return self._fields(asked, client, answer)

    def _count(self) -> int:
        self.uses += self.counts
        return self.uses

    def _client_data(self, kind: Any, options: dict[str, Any]) -> CollectedClientData:
        return CollectedClientData.create(kind, websafe_decode(options["challenge"]), self.origin)

    def _fields(self, asked: dict[str, Any], client: CollectedClientData, response: dict[str, str]) -> dict[str, str]:
        name = websafe_encode(self.id)
        response = {"clientDataJSON": websafe_encode(client), **response}
        answer = {"id": name, "rawId": name, "type": "public-key", "response": response, "clientExtensionResults": {}}
        return {"credential": json.dumps(answer), "challenge": asked["challenge"]}
