"""Read and save a desk's policy: versions that never change, of which the desk's setup names the one that holds.

The number of a version is the second in which it was saved, so no desk that is brought back gives one twice. A desk
without targets reads nothing of them. Holidays are looked up when a version is saved, and stored in it: a later
release of the library changes no promise that was made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final

from django.utils.translation import gettext, gettext_noop

from portal import clock
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid
from portal.quotas import BoundedCache
from portal.schema import keys
from portal.web.locales import declare_stored
from tenants.audit_trail import browsing
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tickets.desk_setup import setup
from tickets.desk_setup.setup import CHANGED
from tickets.desk_setup.stored import SlaPolicyItem, declare_part, pack, sla_version, unpack
from tickets.sla.clocks import PolicyOf
from tickets.sla.policy import Calendar, SlaPolicy

PART: Final = "sla"
MOST_RULES: Final = 20
YEARS: Final = 5  # of holidays that a version has, from the year before the one in which it is saved
_OFF: Final = "off"
_PART: Final = re.compile(r"[1-9][0-9]{0,11}( off)?\Z")
NO_POLICY: Final = SlaPolicy(0, Calendar("UTC", (((540, 1020),),) * 5 + ((), ())), (), warning=25)

_kept: Final[BoundedCache[tuple[str, int], SlaPolicy]] = BoundedCache(2_000)  # versions never change


def current(tenant: TenantContext) -> int:
    """Return the version that holds, 0 for a desk without targets; no read in a request of a page."""
    number, off = _parts(setup.of(tenant).part(PART))
    return 0 if off else number


def latest(tenant: TenantContext) -> int:
    """Return the version that holds for tickets whose clocks run: one without targets stops them."""
    return _parts(setup.of(tenant).part(PART))[0]


def _parts(text: str) -> tuple[int, bool]:
    number, _, off = text.partition(" ")
    return int(number or 0), off == _OFF


def version(tenant: TenantContext, number: int) -> SlaPolicy:
    """Return a version of the policy: one GetItem where this process has not read it before. Raises Invalid."""
    name = tenant.tenant_id, number
    found = _kept.get(name)
    if found is None:
        item = tenant.repository.get(SlaPolicyItem, keys.tenant, sort=sla_version(number))
        if item is None:
            raise Invalid(gettext("There is no version %(number)s of the targets.") % {"number": number})
        found = SlaPolicy.load(unpack(item.policy))
        _kept.put(name, found)
    return found


def of(tenant: TenantContext) -> PolicyOf:
    """Return how `clocks` finds versions of this desk."""
    return partial(version, tenant)


def read(tenant: TenantContext) -> SlaPolicy:
    """Return the policy for somebody who changes it: one consistent GetItem."""
    number, _ = _parts(setup.read(tenant).part(PART))
    return version(tenant, number) if number else NO_POLICY


def save(tenant: TenantContext, wanted: SlaPolicy, *, seen: int, by: Actor) -> None:
    """Store a policy as the next version, with the holidays of its country and an audit row.

    Raises Invalid, and Conflict where another version than the one that was `seen` holds.
    """
    stored = setup.read(tenant)
    number, _ = _parts(stored.part(PART))
    if number != seen:
        raise Conflict(gettext(CHANGED))
    before = version(tenant, number) if number else NO_POLICY
    days_off = holiday_dates(wanted.country, wanted.region)
    calendar = replace(wanted.calendar, days_off=frozenset(days_off))
    after = replace(wanted, version=max(number + 1, int(clock.now().timestamp())), calendar=calendar)
    if replace(after, version=number) == before:
        return
    text = f"{after.version}" if after.rules else f"{after.version} {_OFF}"

    def also(transaction: Transaction) -> None:
        item = SlaPolicyItem(tenant.tenant_id, sla_version(after.version))
        is_new = SlaPolicyItem.tenant_id.does_not_exist()
        transaction.update(item, [SlaPolicyItem.policy.set(pack(after.dump()))], condition=is_new)

    setup.change(tenant, PART, text, seen=stored, by=by, told=(_told(before), _told(after)), also=also)


_TARGETS: Final = declare_stored(gettext_noop("%(rules)s rules, version %(version)s"))
_DAYS_OFF: Final = gettext_noop("%(count)s days")
browsing.declare_values(browsing.counted(_DAYS_OFF), "holidays")


def _told(policy: SlaPolicy) -> Mapping[str, Any]:
    days_off = policy.calendar.days_off
    return {
        "targets": _TARGETS % {"rules": len(policy.rules), "version": policy.version} if policy.version else "none",
        "time zone": policy.calendar.zone,
        "holidays": f"{policy.country} {policy.region}".strip()
        + (f", {_DAYS_OFF % {'count': len(days_off)}}" if days_off else ""),
    }


# --- holidays: the library is loaded by those who save targets ---


@lru_cache(maxsize=1)
def countries() -> dict[str, str]:
    """Return the names of the countries whose holidays are known, by their codes."""
    import holidays
    from holidays.registry import COUNTRIES

    known = holidays.list_supported_countries(include_aliases=False)
    names = {codes[1]: re.sub(r"(?<=[a-z])(?=[A-Z])", " ", codes[0]) for codes in COUNTRIES.values()}
    return {code: names.get(code, code) for code in sorted(known, key=lambda code: names.get(code, code))}


def regions(country: str) -> list[str]:
    """Return the codes of the regions of a country that have holidays of their own."""
    import holidays

    return list(holidays.list_supported_countries().get(country, ()))


@lru_cache(maxsize=64)
def _dates(country: str, region: str, first: int) -> tuple[str, ...]:
    import holidays

    days = holidays.country_holidays(country, subdiv=region or None, years=range(first, first + YEARS))
    return tuple(sorted(day.isoformat() for day in days))


def holiday_dates(country: str, region: str) -> tuple[str, ...]:
    """Return the holidays of a country and region from last year on, none without a country. Raises Invalid."""
    if not country:
        return ()
    if country not in countries():
        raise Invalid(gettext("No holidays are known of this country."), field="country")
    if region and region not in regions(country):
        known = ", ".join(regions(country))
        sentence = (
            gettext("Its regions are: %(known)s.") % {"known": known}
            if known
            else gettext("This country has no regions here; leave it empty.")
        )
        raise Invalid(sentence, field="region")
    return _dates(country, region, clock.now().year - 1)


declare_part(PART, lambda text: _PART.match(text))
declare_part("sla_policy", lambda text: SlaPolicy.load(text).rules is not None)
