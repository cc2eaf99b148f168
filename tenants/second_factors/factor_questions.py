"""Say what follows from a change of second factors, before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tenants.second_factors import factor_store
from tenants.second_factors.factor_store import Factors
from tenants.second_factors.items import PasskeyItem

OUT: Final = "You are signed out on your other devices."


@dataclass(frozen=True)
class FactorQuestion:
    """Hold a question, the label of the button that answers it, and what follows, in sentences."""

    title: str
    button: str
    follows: Sequence[str]
    is_removal: bool = True


def about_app(found: Factors, *, demanded_by: str) -> FactorQuestion:
    """Ask about removing the authenticator app. `demanded_by` names what demands a second factor, "" for nothing."""
    follows = ("The codes that it shows no longer work. You can delete its entry in the app.",)
    left = factor_store.kinds(False, bool(found.passkeys))
    return FactorQuestion(
        "Remove the authenticator app?", "Remove the app", (*follows, *_rest(left, demanded_by=demanded_by), OUT)
    )


def about_passkey(found: Factors, passkey: PasskeyItem, *, demanded_by: str) -> FactorQuestion:
    """Ask about removing this passkey, one of those that were found."""
    follows = ("It no longer signs you in. The device on which it was made keeps it until you delete it there.",)
    left = factor_store.kinds(found.authenticator is not None, len(found.passkeys) > 1)
    return FactorQuestion(
        f"Remove the passkey “{passkey.name}”?",
        "Remove the passkey",
        (*follows, *_rest(left, demanded_by=demanded_by), OUT),
    )


def about_codes(found: Factors) -> FactorQuestion:
    """Ask about replacing the recovery codes."""
    left = found.codes_left
    void = "The one code that is left stops working." if left == 1 else f"The {left} codes that are left stop working."
    follows = (void, "New ones are shown to you once.", OUT) if left else ("New ones are shown to you once.", OUT)
    return FactorQuestion("Replace your recovery codes?", "Replace the codes", follows, is_removal=False)


def _rest(left: str, *, demanded_by: str) -> Sequence[str]:
    if left:
        return ("Your other second factors stay, and so do your recovery codes.",)
    alone = "It is your only second factor: your recovery codes go with it, and your password alone signs you in."
    if demanded_by:
        return (alone, f"{demanded_by} asks for a second factor: you get in there again once you have added one.")
    return (alone,)
