"""Put isolation runs and proofs into words, for the owners' page and for the signed page of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from portal import clock
from portal.dynamo.store import Store
from portal.web import locales
from tenants.auditing import audit_export
from tenants.membership import members
from tenants.sign_in.accounts import Profile
from tenants.tenancy import context
from tenants.tenancy.stored import TenantItem
from tickets.isolation_runs import platform_proofs, run_requests
from tickets.isolation_runs.attack import CROSSED, GUARD, IAM, KEYS
from tickets.isolation_runs.attempts import IsolationAttempt, RunPlan
from tickets.isolation_runs.stored import IsolationRunItem, PlatformProofItem

VERIFY: Final = f"python3 {audit_export.SCRIPT.name} pooldesk-keys.json REPORT.html"  # as a person types it
_REFUSED: Final = "refused an honest "  # of what a proof says of a mistake
SHOWN: Final = 8  # of the last attempts
_ANSWERS: Final = {
    KEYS: gettext_noop("Refused by the keys."),
    GUARD: gettext_noop("Refused by the guard."),
    IAM: gettext_noop("Refused by IAM."),
    CROSSED: gettext_noop("It got through."),
}
# Plain titles of the kinds whose names say nothing to people outside of the project. Others are shown by their names.
_TITLES: Final = {
    "other items": gettext_noop("items that belong to no desk"),
    "aggregates": gettext_noop("counts for the dashboard and reports"),
    "arrival": gettext_noop("progress of a desk's import"),
    "due": gettext_noop("when snoozed tickets wake"),
    "endpoints": gettext_noop("webhooks"),
    "fences of moves": gettext_noop("locks while a desk moves"),
    "heat": gettext_noop("load of ticket shards"),
    "hold": gettext_noop("deliveries that are paused"),
    "markers of barriers": gettext_noop("marks by which counts are brought up to date"),
    "noise": gettext_noop("load figures"),
    "outbox": gettext_noop("events and mails that wait to be sent"),
}
_LAYERS: Final = (
    (
        KEYS,
        gettext_noop("Keys"),
        gettext_noop("The program forms each key itself, with the desk that somebody is signed in to in front."),
    ),
    (
        GUARD,
        gettext_noop("Guard"),
        gettext_noop("Each request is read once more before it leaves, and one for another desk's items is not sent."),
    ),
    (
        IAM,
        gettext_noop("IAM"),
        gettext_noop("The database itself compares each key with the desk that the request was signed for."),
    ),
)
_AREAS: Final = {
    "policy": gettext_noop("Policies with a mistake"),
    "guard": gettext_noop("Guards that overlook something"),
    "placement": gettext_noop("Requests sent to the wrong place"),
    "objects": gettext_noop("Files that are not compared"),
    "rights": gettext_noop("Roles with one right too many"),
}


def verdict(item: IsolationRunItem | None, *, can_attack: bool = True) -> dict[str, Any]:
    """Answer the page's question in a word and a sentence, with the tone that goes with it."""
    if item is None:
        if can_attack:
            return _said("info", _("You have ordered no attack yet"), _("Order one here, and see what refuses it."))
        return _said("info", _("No attack was ordered yet"), _("An owner of this desk can order one on this page."))
    when = clock.parse(item.ended_at or item.begun_at)
    tried = ngettext("%(num)s attempt", "%(num)s attempts", int(item.tried)) % {
        "num": locales.current().number(int(item.tried))
    }
    if item.state == run_requests.HELD:
        told = _(
            "Yes, as far as this attack tried: %(tried)s in the name of a desk that does not exist, and each one was "
            "refused."
        )
        return _said("success", told % {"tried": tried}, when=when)
    if item.state == run_requests.CROSSED:
        told = _("No. An attempt got through, and the attack stopped there. The platform's operators were alerted.")
        return _said("error", told, when=when)
    if item.state == run_requests.REFUSED:
        told = _("This cannot be said: the desk's own requests were refused as well. Ask the platform's operators.")
        return _said("warning", told, when=when)
    if item.state == run_requests.CANCELLED:
        told = _("The last attack was stopped after %(tried)s. None of them got through.")
        return _said("info", told % {"tried": tried}, when=when)
    if item.state == run_requests.CANCELLING:
        return _said("info", _("The attack is being stopped"))
    return _said("info", _("Your desk is being attacked"))


def _said(tone: str, title: str, text: str = "", when: Any = None) -> dict[str, Any]:
    return {"tone": tone, "title": title, "text": text, "when": when}


def run_page(item: IsolationRunItem, plan: RunPlan) -> dict[str, Any]:
    """Return what a page says of the last run: how far it is, the last attempts, layers, and kinds of keys."""
    is_same = item.plan == plan.digest
    answers = item.answers if is_same else ""
    return {
        "item": item,
        "is_running": run_requests.RUNS.goes_on(item),
        "latest": _latest(plan, answers),
        "crossing": said(plan.attempt(len(answers) - 1), CROSSED) if CROSSED in answers else None,
        "layers": layers(item),
        "kinds": by_kind(plan, answers, item.filled) if answers else [],
        "made_up": _made_up(plan, answers, item.filled) if answers else None,
    }


def _latest(plan: RunPlan, answers: str) -> list[dict[str, Any]]:
    """Return the last attempts, one of each sort: neighbours try the same on other kinds of keys."""
    found: dict[str, dict[str, Any]] = {}
    for number in reversed(range(len(answers))):
        attempt = plan.attempt(number)
        if attempt.trick.says not in found:
            found[attempt.trick.says] = said(attempt, answers[number])
        if len(found) == SHOWN:
            break
    return [*found.values()]


def _made_up(plan: RunPlan, answers: str, filled: str) -> dict[str, int]:
    """Count the kinds of keys that the desk has, all kinds, and the attempts with a key that was made up."""
    lacking = {place for place in range(len(plan.kinds)) if filled[place : place + 1] != "1"}
    return {
        "found": len(plan.kinds) - len(lacking),
        "kinds": len(plan.kinds),
        "attempts": sum(number % len(plan.kinds) in lacking for number in range(len(answers))),
    }


def title_of(kind: str) -> str:
    """Return the name of a kind of key as people read it."""
    return _(_TITLES[kind]) if kind in _TITLES else kind


def said(attempt: IsolationAttempt, answer: str) -> dict[str, Any]:
    return {
        "number": attempt.number + 1,
        "what": title_of(attempt.kind.what),
        "place": attempt.kind.place,
        "is_index": attempt.kind.index is not None,
        "says": _(attempt.trick.says),
        "answer": _(_ANSWERS[answer]),
        "crossed": answer == CROSSED,
    }


def layers(item: IsolationRunItem | None) -> list[dict[str, Any]]:
    """Return the three layers, and how many attempts of a run each refused."""
    tally = run_requests.tally_of(item) if item is not None else Counter[str]()
    return [{"letter": n, "name": _(name), "does": _(does), "refused": tally[n]} for n, name, does in _LAYERS]


def by_kind(plan: RunPlan, answers: str, filled: str) -> list[dict[str, Any]]:
    """Return each kind of key with how often each layer refused, those first that the desk has."""
    counted = [Counter[str]() for _ in plan.kinds]
    for number, answer in enumerate(answers):
        counted[number % len(plan.kinds)][answer] += 1
    rows = [
        {
            "what": title_of(kind.what),
            "place": kind.place,
            "is_index": kind.index is not None,
            "has": filled[place : place + 1] == "1",
            "tried": counted[place].total(),
            "keys": counted[place][KEYS],
            "guard": counted[place][GUARD],
            "iam": counted[place][IAM],
            "crossed": counted[place][CROSSED],
        }
        for place, kind in enumerate(plan.kinds)
    ]
    return sorted(rows, key=lambda row: (not row["crossed"], not row["has"], row["is_index"], row["what"]))


def proof_page(item: PlatformProofItem | None) -> dict[str, Any] | None:
    if item is None:
        return None
    areas: dict[str, list[dict[str, Any]]] = {}
    for one in platform_proofs.mutants_of(item):
        area, _colon, mistake = one.mistake.partition(": ")
        told = {"mistake": mistake or area, "noticed_by": _noticed(one.noticed_by), "attempts": one.attempts}
        areas.setdefault(area, []).append(told)
    return {
        "when": clock.parse(item.name),
        "holds": bool(item.holds),
        "verdict": item.verdict,
        "hostile": int(item.hostile),
        "honest": int(item.honest),
        "tenants": int(item.tenants),
        "noticed": int(item.noticed),
        "broken": int(item.broken),
        "engine": item.engine,
        "release": item.release,
        "areas": [
            {"name": _(_AREAS[name]) if name in _AREAS else name, "mistakes": several}
            for name, several in sorted(areas.items(), key=lambda area: -len(area[1]))
        ],
    }


def _noticed(by: str) -> str:
    """Return in words what gave a mistake away, "" for nothing."""
    sort, _colon, what = by.partition(": ")
    if sort == "not kept":
        return _("a promise that no longer held: %(promise)s") % {"promise": what}
    if sort == "let through":
        return _("a request that was let through: %(request)s") % {"request": what}
    if by.startswith(_REFUSED):
        return _("a rightful request that was refused: %(operation)s") % {"operation": by.removeprefix(_REFUSED)}
    return by


def former_page(items: list[IsolationRunItem]) -> Iterator[dict[str, Any]]:
    words = {
        run_requests.HELD: _("each one refused"),
        run_requests.CROSSED: _("one got through"),
        run_requests.REFUSED: _("nothing to be said"),
        run_requests.CANCELLED: _("stopped"),
    }
    for item in items:
        yield {
            "id": item.run_id,
            "begun": clock.parse(item.begun_at),
            "by": item.by_email,
            "tried": int(item.tried),
            "result": words.get(item.state, item.state),
            "is_bad": item.state in (run_requests.CROSSED, run_requests.REFUSED),
            "release": item.release,
            "has_file": bool(item.file),
        }


def signed(tenant: TenantItem, item: IsolationRunItem, plan: RunPlan) -> str:
    """Return the page of a run that is signed and downloaded: one file with all attempts, in the asker's language."""
    desk = context.for_system(tenant)
    asker = members.member(Store("tenant", tenant.tenant_id), item.by_id)
    with locales.shown_in(asker.locale_at(desk) if asker else Profile().locale(desk.chosen_zone, desk.chosen_language)):
        told = run_page(item, plan)
        page = {
            "tenant": tenant,
            "item": item,
            "verdict": verdict(item),
            "begun": clock.parse(item.begun_at),
            "ended": clock.parse(item.ended_at),
            "attempts": [said(plan.attempt(number), answer) for number, answer in enumerate(item.answers)],
            "command": VERIFY,
            "is_aws": item.engine.startswith("Amazon"),
            "layers": told["layers"],
            "kinds": told["kinds"],
            "made_up_keys": told["made_up"],
        }
        return render_to_string("isolation_runs/report.html", page)
