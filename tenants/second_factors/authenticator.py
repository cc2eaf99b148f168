"""Compute the codes of an authenticator app: RFC 6238, 6 digits, SHA-1, 30 seconds, which is what all apps speak."""

from __future__ import annotations

import time
from typing import Final

import pyotp
from django.utils.crypto import constant_time_compare

STEP_SECONDS: Final = 30
LEEWAY: Final = 1  # steps before and after now: the clocks of phones are a little off
ISSUER: Final = "Pooldesk"


def new_secret() -> str:
    """Return 160 random bits in base 32, as RFC 4226 recommends."""
    return pyotp.random_base32()


def address(secret: str, *, email: str) -> str:
    """Return the otpauth:// address that a QR code holds."""
    return str(pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=ISSUER))


def current_step() -> int:
    """Return the number of the 30 seconds that are now, since the epoch."""
    return int(time.time()) // STEP_SECONDS


def step_of(secret: str, code: str, *, after: int = 0) -> int | None:
    """Return the step whose code this is, near now and later than `after`, or None. Spaces in the code do not count."""
    digits = "".join(code.split())
    if not (digits.isascii() and digits.isdecimal()):
        return None
    app, now = pyotp.TOTP(secret), current_step()
    near = range(max(now - LEEWAY, after + 1), now + LEEWAY + 1)
    return next((step for step in near if constant_time_compare(app.generate_otp(step), digits)), None)
