"""People with second factors, and what they enter."""

from __future__ import annotations

import re
from typing import Any

import pyotp

from tenants.audit_trail.recording import Actor
from tenants.sign_in import factor_secrets, factors
from tests.support.soft_passkey import SoftPasskey
from tests.support.world import PASSWORD, Browser, World

SECURITY = "/account/security/"


def code(secret: str, *, later: int = 0) -> str:
    """The code of an app, so many steps from now."""
    return str(pyotp.TOTP(secret).generate_otp(factor_secrets.current_step() + later))


def wrong(secret: str) -> str:
    """Six digits that no step near now has."""
    near = {code(secret, later=step) for step in range(-2, 3)}
    return next(digits for digits in ("000000", "111111", "222222", "333333", "444444", "555555") if digits not in near)


def give_app(world: World, who: str) -> tuple[str, list[str]]:
    """An authenticator app for somebody, whose code of now was used; its secret and the recovery codes."""
    user, secret = world.users[who], factor_secrets.new_secret()
    by = Actor(user.id, user.email)
    change = factors.add_authenticator(user.id, secret=secret, code=code(secret), by=by)
    world.users[who] = change.user
    return secret, list(change.codes)


def confirmed(world: World, who: str, where: str | None = None) -> Browser:
    """Somebody's browser, in which the password was just entered again."""
    browser = world.browser(who, where)
    assert browser.send(f"{SECURITY}confirm/", {"password": PASSWORD}).status_code == 302  # type: ignore[attr-defined]
    return browser


def add_passkey(browser: Browser, passkey: SoftPasskey, name: str = "Laptop") -> Any:
    """The answer to the page's button, in a browser that is confirmed."""
    asked = browser.get(f"{SECURITY}passkeys/options/").json()
    return browser.send(f"{SECURITY}passkeys/", {"name": name, **passkey.create(asked)})


def signed(browser: Browser, passkey: SoftPasskey) -> dict[str, str]:
    """What the form of a passkey holds after the browser has signed."""
    return passkey.sign(browser.get("/login/passkey/challenge/").json())


def codes_in(response: Any) -> list[str]:
    return re.findall(r"<code>([a-z0-9]{4}(?:-[a-z0-9]{4}){3})</code>", response.content.decode())
