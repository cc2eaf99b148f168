"""Show a desk's public form and take what is sent by it; let admins set it up, look at it, and embed it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

from django.conf import settings as deployment
from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import escape
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.dynamo.client import fan_out
from portal.errors import Invalid, NotFound
from portal.web.access import member, on_get, on_post
from portal.web.client_address import client_address
from portal.web.conflicts import put_on_newer, status_of, told_in
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.request import GuestRequest, TenantRequest, absolute_url, actor_of
from tickets.articles.presenters import suggested_to_guests
from tickets.attachments.forms import NO_FILES, SentFiles, guest_files_of
from tickets.attachments.presenters import GUEST_FIELD
from tickets.attachments.presenters import field as files_field
from tickets.attachments.views import answer_guest_upload
from tickets.custom_fields import definitions
from tickets.outside import looks, pages
from tickets.outside.looks import Looks
from tickets.public_form import challenges, form_settings, receiving
from tickets.public_form.challenges import Challenge
from tickets.public_form.form_settings import FormSettings
from tickets.public_form.forms import TRAP, GuestForm, LooksForm, SettingsForm
from tickets.public_form.receiving import AlreadySent, SentForm

_PAGE: Final = "tickets:public_pages"
_EMBED: Final = '<iframe src="{}" title="{}" width="100%" height="860" style="border:0"></iframe>'


def _read(desk: TenantContext) -> tuple[Looks, FormSettings]:
    """Read what the form's pages need, by one BatchGetItem. Raises NotFound where the desk's form is not open."""
    of_looks, of_form = desk.repository.get_all([looks.wanted(desk), form_settings.wanted(desk)])
    settings = FormSettings.of(of_form)
    if not settings.is_on:
        raise NotFound
    return Looks.of(desk, of_looks), settings


@pages.desk_by_name
@on_get(get="attempts, looks, public form, setup, slug", trips=2, reads=8)
@on_post(
    get="address, address of a requester, attempts, file, help centre, looks, mail settings, member, public form, "
    "requester, setup, slug",
    query="help centre",
    write="address of a requester, attempts, counter, file, outbox row, request, requester, sent form, ticket",
    trips=13,
    reads=25,
    writes=50,
)
def form(request: GuestRequest, slug: str) -> HttpResponse:
    """Show the form: one round trip for the desk, one for the rest. Take what is sent by it."""
    desk, address = request.desk, client_address(request)
    if request.method != "POST":
        reads: list[Any] = [
            lambda: _read(desk), lambda: definitions.of(desk), lambda: challenges.bits_for(desk, address=address)
        ]  # fmt: skip
        (of_looks, settings), defined, bits = fan_out(reads)
        empty, challenge = GuestForm(settings, defined), challenges.issue(desk, bits=bits)
        return _page(request, of_looks, settings, empty, challenge=challenge)
    reads = [lambda: _read(desk), lambda: definitions.of(desk)]
    (of_looks, settings), defined = fan_out(reads)
    with pages.language(request, of_looks) as language:
        return _sent(request, of_looks, settings, GuestForm(settings, defined, request.POST), language)


def _sent(
    request: GuestRequest, of_looks: Looks, settings: FormSettings, filled: GuestForm, language: str
) -> HttpResponse:
    desk, address = request.desk, client_address(request)
    challenge = challenges.read(desk, request.POST.get("challenge", ""))
    is_proved = challenge is not None and challenge.is_proved_by(request.POST.get("proof", ""))
    files = NO_FILES
    if challenge and settings.takes_files:
        files = guest_files_of(request, desk, challenge.nonce)
        for problem in files.problems:
            filled.add_error(None, problem)
    again = partial(_again, request, of_looks, settings, filled, files=files)
    if challenge is None:
        return again(_("This page was open for a long time. Nothing was lost: please send it again."))
    if request.POST.get(TRAP):
        problem = _("A field that people do not see was filled in, perhaps by your browser. Please send it again.")
        return again(problem, challenge=challenge)
    if not filled.is_valid():
        return again(challenge=challenge)
    if not is_proved and challenge.wait:
        problem = ngettext(
            "Please wait %(num)s more second, then send it again. With JavaScript you need not wait.",
            "Please wait %(num)s more seconds, then send it again. With JavaScript you need not wait.",
            challenge.wait,
        )
        return again(problem % {"num": challenge.wait}, challenge=challenge, status=429)
    if minutes := challenges.count(desk, address=address, is_proved=is_proved):
        return again(_too_many(minutes, is_proved), challenge=challenge, status=429)
    values = filled.values
    try:
        receiving.receive(desk, SentForm(**values, language=language, files=tuple(files.files)), challenge)
    except AlreadySent:
        return again(_("Another message was sent from this page. If this is a new one, please send it again."))
    except Invalid as error:
        filled.add_error(error.field if error.field in filled.fields else None, error.message)
        return again(challenge=challenge)
    shown = {"email": values["email"], "next_steps": settings.next_steps, "slug": desk.slug}
    return pages.page(request, "public_form/sent.html", shown, looks=of_looks, framed_by=settings.origins)


def _too_many(minutes: int, is_proved: bool) -> str:
    wait = ngettext("Please send it again in %(num)s minute.", "Please send it again in %(num)s minutes.", minutes) % {
        "num": minutes
    }
    if is_proved:
        return _("Many messages came from your network or to this desk.") + f" {wait}"
    return _("Without JavaScript only a few messages are taken at a time.") + f" {wait}"


def _again(
    request: GuestRequest,
    of_looks: Looks,
    settings: FormSettings,
    filled: GuestForm,
    problem: str = "",
    *,
    files: SentFiles,
    challenge: Challenge | None = None,
    status: int = 422,
) -> HttpResponse:
    """Show the form with what was typed. Without a `challenge` that is still good it gets a new one, and the files that
    were sent for the former one have to be added again."""
    if problem:
        filled.full_clean()
        filled.add_error(None, problem)
    kept = files.files if challenge else ()
    if files.files and not challenge:
        filled.add_error(None, _("Please add your files again."))
    if challenge is None:
        challenge = challenges.issue(
            request.desk, bits=challenges.bits_for(request.desk, address=client_address(request))
        )
    return _page(request, of_looks, settings, filled, challenge=challenge, files=SentFiles(kept), status=status)


def _page(
    request: GuestRequest | TenantRequest,
    of_looks: Looks,
    settings: FormSettings,
    filled: GuestForm,
    *,
    challenge: Challenge | None,
    files: SentFiles = NO_FILES,
    status: int = 200,
) -> HttpResponse:
    desk: Any = getattr(request, "desk", None) or request.tenant
    shown: dict[str, Any] = {
        "form": filled,
        "settings": settings,
        "challenge": challenge,
        "trap": TRAP,
        "slug": desk.slug,
        "suggested": suggested_to_guests(desk, filled.data.get("subject", "")) if status != 200 else [],
        "attached": files_field(files.files, limits=GUEST_FIELD) if settings.takes_files else None,
        "wait": challenges.UNPROVED_SECONDS,
        "most": challenges.UNPROVED_OF_NETWORK,
        "minutes": deployment.SIGN_IN_WINDOW // 60,
    }
    return pages.page(
        request, "public_form/form.html", shown, looks=of_looks, status=status, framed_by=settings.origins
    )


@pages.desk_by_name
@on_get(get="looks, public form, slug", trips=1, reads=3)
@on_post(get="attempts, file, looks, public form, slug", write="attempts, file", trips=8, reads=30, writes=5)
def upload(request: GuestRequest, slug: str) -> HttpResponse:
    """Answer with a signed form for one file of the form that is being filled in."""
    desk = request.desk
    of_looks, settings = _read(desk)
    if request.method != "POST":
        raise NotFound  # as where no form is open: a 405 would tell which desks there are
    challenge = challenges.read(desk, request.GET.get("challenge", ""))
    with pages.language(request, of_looks):
        if challenge is None or not settings.takes_files:
            return JsonResponse({"problem": _("Reload the page and try again.")}, status=422)
        return answer_guest_upload(request, desk, challenge.nonce)


# --- for admins ---


@member(Role.ADMIN)
@on_get(get="looks, public form", trips=1, reads=3)
@on_post(get="looks, public form", write="audit row, membership, public form", trips=5, reads=5, writes=15)
def settings_page(request: TenantRequest) -> HttpResponse:
    """Show looks and settings, or store the settings of the form."""
    if request.method != "POST":
        return _settings(request)
    sent = SettingsForm(definitions.of(request.tenant), request.POST)
    if sent.is_valid():
        with told_in(sent):
            form_settings.change(
                request.tenant, values=sent.values, version=sent.cleaned_data["version"], by=actor_of(request)
            )
            messages.success(request, _("Settings saved."))
            return redirect(_PAGE)
    return _settings(request, settings_form=sent)


@member(Role.ADMIN)
@on_post(get="looks, public form", write="audit row, logo, looks, membership", trips=5, reads=5, writes=20)
def change_looks(request: TenantRequest) -> HttpResponse:
    """Store name, colour and language of the desk's public pages."""
    sent = LooksForm(request.POST, request.FILES)
    if sent.is_valid():
        version, by = sent.cleaned_data["looks_version"], actor_of(request)
        with told_in(sent):
            looks.change(request.tenant, values=sent.values, logo=sent.picture, version=version, by=by)
            messages.success(request, _("Looks saved."))
            return redirect(_PAGE)
    return _settings(request, looks_form=sent)


@member(Role.ADMIN)
@on_get(get="looks, public form", trips=2, reads=3)
@on_post(get="looks, public form", trips=3, reads=4)
def preview(request: TenantRequest) -> HttpResponse:
    """Show the form as it is set up, or as the settings that were sent would make it. Nothing is stored."""
    tenant = request.tenant
    of_looks = looks.looks_of(tenant)
    settings, defined = form_settings.read(tenant), definitions.of(tenant)
    if request.method == "POST":
        sent = SettingsForm(defined, request.POST)
        try:
            settings = FormSettings(**form_settings.checked(sent.values)) if sent.is_valid() else settings
        except Invalid:
            return _settings_refused(request, sent)
    return _page(request, of_looks, replace(settings, origins=()), GuestForm(settings, defined), challenge=None)


def _settings_refused(request: TenantRequest, sent: SettingsForm) -> HttpResponse:
    with told_in(sent):
        form_settings.checked(sent.values)
    return _settings(request, settings_form=sent)


def _settings(
    request: TenantRequest,
    *,
    looks_form: LooksForm | None = None,
    settings_form: SettingsForm | None = None,
) -> HttpResponse:
    tenant = request.tenant
    item, stored = tenant.repository.get_all([looks.wanted(tenant), form_settings.wanted(tenant)], consistent=True)
    of_looks, settings = Looks.of(tenant, item), FormSettings.of(stored)
    address = absolute_url(request, reverse("tickets:public_form", args=[tenant.slug]))
    of_now, settings_now = LooksForm.of(of_looks, item), SettingsForm.of(settings, definitions.of(tenant))
    if looks_form:
        put_on_newer(looks_form, of_now, version="looks_version")
    if settings_form:
        put_on_newer(settings_form, settings_now)
    page = {
        "looks_form": looks_form or of_now,
        "settings_form": settings_form or settings_now,
        "is_on": settings.is_on,
        "address": address,
        "embed": _EMBED.format(address, escape(of_looks.name)),
        "origins": settings.origins,
        "looks": of_looks,
    }
    sent = looks_form or settings_form
    return render(request, "public_form/settings.html", page, status=status_of(sent) if sent else 200)
