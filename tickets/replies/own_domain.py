"""Let a desk send from an address of its own domain, once the domain's DNS names this desk.

The proof is a TXT record that holds a signature over the desk and the domain: a domain that another desk has set up, or
that the carrier knows already, is of no use to this one. SPF, DMARC and DKIM say how other mail servers will take the
letters. They are shown and decide nothing, but for the word of Amazon SES, which refuses to send from a domain that it
has not verified.

Sources: RFC 7208 (SPF), RFC 6376 (DKIM), RFC 7489 (DMARC); checkdmarc's documentation.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import dns.exception
from django.conf import settings as site
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.errors import Invalid, PortalError
from portal.mailing import ses_backend
from portal.mailing.ses_backend import SendingIdentity
from portal.schema import keys
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tickets.replies import mail_settings
from tickets.replies.mail_settings import MailSettings
from tickets.requesters import requester_addresses

if TYPE_CHECKING:
    import dns.resolver

PROOF_HOST: Final = "_pooldesk"
_PROOF: Final = "pooldesk-desk="
_SECONDS: Final = 3.0  # of one question to the name system
_DEADLINE: Final = 12.0  # seconds of a whole check; SPF may lead to ten more questions
_NO_ANSWER: Final = gettext_noop("The name system did not answer in time. Check again later.")
_NO_SPF: Final = gettext_noop("There is no SPF record.")
_NO_DMARC: Final = gettext_noop("There is no DMARC record.")
OK, MISSING, WARNING = "ok", "missing", "warning"


@dataclass(frozen=True)
class DnsRecord:
    """A record that the desk's domain needs. `name` is what findings are under, `why` a sentence."""

    name: str
    kind: str
    host: str
    value: str
    why: str
    is_needed: bool


def proof_of(tenant_id: str, domain: str, *, key: str = "") -> str:
    """Return the text of the TXT record by which a domain names a desk."""
    about = f"{keys.tenant(tenant_id)}/{domain}"
    signed = salted_hmac("pooldesk.domain", about, secret=key or None, algorithm="sha256")
    return _PROOF + signed.hexdigest()[:40]


def records(tenant: TenantContext, settings: MailSettings) -> list[DnsRecord]:
    """Return the records that the domain needs; those for DKIM are known once Amazon SES was asked."""
    domain = settings.domain
    why = _("It proves that the domain is yours. Letters leave from it only while this record is there.")
    found = [DnsRecord("proof", "TXT", f"{PROOF_HOST}.{domain}", proof_of(tenant.tenant_id, domain), why, True)]
    for token in _tokens(settings):
        value = f"{token}.dkim.amazonses.com"
        why = _("Amazon SES signs your letters by it (DKIM).")
        found.append(DnsRecord(f"dkim {token}", "CNAME", f"{token}._domainkey.{domain}", value, why, True))
    if site.MAIL_SPF:
        why = _(
            "It lets the mail server of this installation send for your domain "
            "(SPF). Some mail servers look at it, "
            "though the return address of letters is one of this installation. If you have one, add to it: %(spf)s"
        ) % {"spf": site.MAIL_SPF}
        found.append(DnsRecord("spf", "TXT", domain, f"v=spf1 {site.MAIL_SPF} ~all", why, False))
    why = _("It tells other mail servers what to do with letters that only pretend to be yours (DMARC).")
    found.append(DnsRecord("dmarc", "TXT", f"_dmarc.{domain}", "v=DMARC1; p=none", why, False))
    return found


def _tokens(settings: MailSettings) -> list[str]:
    return [token for token in settings.findings.get("ses tokens", "").split(" ") if token]


def unchecked() -> list[str]:
    """Say what this installation cannot check, so that nobody takes a page of ticks for more than it is."""
    found = [_("Whether the mail servers of your customers take the letters: each decides for itself.")]
    if not ses_backend.is_used():
        found.insert(
            0,
            _(
                "Whether the mail server of this installation signs letters for your "
                "domain (DKIM). Ask whoever runs it; "
                "without that, DMARC does not hold, since the return address of letters is one of this installation."
            ),
        )
    return found


def choose(tenant: TenantContext, *, sender: str, version: int, by: Actor) -> bool:
    """Take an address of the desk's own to send from, "" for none; tell whether that changed anything.

    It is used once a check has found the proof. Raises Invalid, and Conflict where the settings were changed since.
    """
    address = requester_addresses.normal(sender, field="domain_sender") if sender.strip() else ""
    domain = address.rpartition("@")[2]
    if address and ("." not in domain or domain.startswith("[")):
        raise Invalid(_("Enter an address of a domain that is known on the internet."), field="domain_sender")
    ours = {site.MAIL_DOMAIN, site.DEFAULT_FROM_EMAIL.rpartition("@")[2].rstrip("> ")} - {""}
    if any(domain == one or domain.endswith(f".{one}") for one in ours):
        raise Invalid(
            _("This domain is that of the installation. Enter an address of your own."), field="domain_sender"
        )
    now = mail_settings.read(tenant)
    if address == now.domain_sender:
        return False
    changed: dict[str, Any] = {"domain_sender": address}
    if domain != now.domain:
        changed |= dict.fromkeys(("domain_proved_at", "domain_checked_at", "domain_findings"))
        changed["domain"] = domain
    mail_settings.store(tenant, now, changed, version=version, by=by, before={"domain_sender": now.domain_sender})
    return True


def check(tenant: TenantContext, *, by: Actor) -> MailSettings:
    """Look at the domain's DNS now, store what was found, and return the settings since.

    Takes up to _DEADLINE seconds and some of Amazon SES. Raises Invalid where no domain was chosen, and Conflict.
    """
    now = mail_settings.read(tenant)
    if not now.domain:
        raise Invalid(_("Choose an address to send from first."), field="domain_sender")
    findings = _findings(tenant.tenant_id, now.domain)
    is_proved = findings["proof"].startswith(OK) and findings.get("ses", OK).startswith(OK)
    at = clock.stamp()
    changed: dict[str, Any] = {
        "domain_checked_at": at,
        "domain_findings": json.dumps(findings, sort_keys=True),
        "domain_proved_at": at if is_proved else None,
    }
    was, words = bool(now.domain_proved_at), {True: gettext_noop("proved"), False: gettext_noop("not proved")}
    changed["domain_state"] = words[is_proved]
    mail_settings.store(tenant, now, changed, version=now.version, by=by, before={"domain_state": words[was]})
    return mail_settings.read(tenant)


# --- looking ---


def _findings(tenant_id: str, domain: str) -> dict[str, str]:
    """Return what is found of each record, as `<ok, missing or warning> <sentence>`."""
    looks: dict[str, Callable[[], str]] = {
        "proof": partial(_proof, tenant_id, domain),
        "spf": partial(_spf, domain),
        "dmarc": partial(_dmarc, domain),
    }
    found: dict[str, str] = {}
    if ses_backend.is_used():
        try:
            identity = ses_backend.identity(domain)
            found["ses tokens"] = " ".join(identity.tokens)
            found["ses"] = _by_ses(identity)
            looks |= {f"dkim {token}": partial(_dkim, domain, token) for token in identity.tokens}
        except PortalError as error:
            found["ses"] = f"{MISSING} {error.message}"
    pool = ThreadPoolExecutor(max_workers=len(looks), thread_name_prefix="dns")
    try:
        waiting = {name: pool.submit(look) for name, look in looks.items()}
        until = clock.now().timestamp() + _DEADLINE
        for name, one in waiting.items():
            try:
                found[name] = one.result(timeout=max(0.1, until - clock.now().timestamp()))
            except TimeoutError:
                found[name] = f"{WARNING} {_NO_ANSWER}"
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return found


def _by_ses(identity: SendingIdentity) -> str:
    if identity.is_verified:
        return f"{OK} " + gettext_noop("Amazon SES sends from this domain.")
    return f"{MISSING} " + gettext_noop(
        "Amazon SES has not found its DKIM records yet. It looks again by itself, for three days."
    )


def _resolver() -> dns.resolver.Resolver:
    import dns.resolver  # with a hundred modules, which only a check has to wait for

    resolver = dns.resolver.Resolver(configure=not site.DNS_SERVERS)
    if site.DNS_SERVERS:
        resolver.nameservers = [one.partition(":")[0] if _has_port(one) else one for one in site.DNS_SERVERS]
        resolver.port = next((int(one.partition(":")[2]) for one in site.DNS_SERVERS if _has_port(one)), 53)
    resolver.lifetime = resolver.timeout = _SECONDS
    return resolver


def _has_port(server: str) -> bool:
    return server.count(":") == 1  # an IPv6 address has more


def _texts(host: str, kind: str = "TXT") -> list[str]:
    """Return the records of a host. Raises dns.exception.Timeout and NoNameservers where nobody answers."""
    import dns.resolver

    try:
        answer = _resolver().resolve(host, kind, search=False)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return []
    if kind == "TXT":
        return [b"".join(one.strings).decode("utf-8", "replace") for one in answer]
    return [one.to_text().rstrip(".").lower() for one in answer]


def _proof(tenant_id: str, domain: str) -> str:
    wanted = [proof_of(tenant_id, domain, key=key) for key in (site.SECRET_KEY, *site.SECRET_KEY_FALLBACKS)]
    try:
        found = [text.strip() for text in _texts(f"{PROOF_HOST}.{domain}")]
    except dns.exception.DNSException:
        return f"{WARNING} {_NO_ANSWER}"
    if any(hmac.compare_digest(text.encode(), one.encode()) for text in found for one in wanted):
        return f"{OK} " + gettext_noop("The domain names this desk.")
    if any(text.startswith(_PROOF) for text in found):
        return f"{MISSING} " + gettext_noop("The record is there, but with another value.")
    return f"{MISSING} " + gettext_noop("There is no such record yet.")


def _dkim(domain: str, token: str) -> str:
    try:
        found = _texts(f"{token}._domainkey.{domain}", "CNAME")
    except dns.exception.DNSException:
        return f"{WARNING} {_NO_ANSWER}"
    return (
        f"{OK} " + gettext_noop("Found.")
        if f"{token}.dkim.amazonses.com" in found
        else f"{MISSING} " + gettext_noop("There is no such record yet.")
    )


def _spf(domain: str) -> str:
    from checkdmarc import spf, utils  # it takes a second to import, which only a check has to wait for

    utils.DNS_CACHE.clear()  # whoever has just mended a record looks again at once
    told: dict[str, Any] = spf.check_spf(domain, resolver=_resolver(), timeout=_SECONDS)
    if not told.get("valid"):
        return f"{MISSING} {_sentence(told.get('error') or _NO_SPF)}"
    if site.MAIL_SPF and site.MAIL_SPF not in str(told.get("record", "")):
        return f"{WARNING} " + gettext_noop(
            "The domain has an SPF record, which does not name the mail server of this installation."
        )
    return _with_warnings(told, gettext_noop("The domain has a valid SPF record."))


def _dmarc(domain: str) -> str:
    from checkdmarc import dmarc, utils

    utils.DNS_CACHE.clear()
    told: Any = dmarc.check_dmarc(domain, resolver=_resolver(), timeout=_SECONDS)
    if not told.get("valid"):
        return f"{MISSING} {_sentence(told.get('error') or _NO_DMARC)}"
    return _with_warnings(told, gettext_noop("The domain has a valid DMARC record."))


def _with_warnings(told: Any, good: str) -> str:
    warnings = [_sentence(one) for one in told.get("warnings", ())]
    return f"{WARNING} {' '.join(warnings)}"[:500] if warnings else f"{OK} {good}"


def _sentence(text: Any) -> str:
    shown = " ".join(str(text).split())[:300]
    return shown if shown.endswith(".") else f"{shown}."
