"""Show and change a person's own profile, and the signature that they have at the desk that is open."""

from __future__ import annotations

from dataclasses import asdict

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from portal.web import locales
from portal.web.access import counted, in_person, member, on_get, on_post, signed_in
from portal.web.conflicts import put_on_stored, told_in
from tenants.membership import own_profile
from tenants.membership.forms import ProfileForm, SignatureForm
from tenants.sign_in.accounts import Profile
from tenants.tenancy.context import Role
from tenants.tenancy.request import SignedInRequest, TenantRequest, actor_of, locale_of


@signed_in
@on_get(get="member", trips=1, reads=2)
@on_post(
    get="member",
    query="membership",
    write="account, audit row, member",
    trips=5,
    reads=4,
    writes=15,
    per="desk of the person",
    each=(4, 2, 12),
)
def profile(request: SignedInRequest) -> HttpResponse:
    """Show the profile and store it: the account comes with the request, and the signature costs one read."""
    user = request.user
    if request.method != "POST":
        return _page(request)
    form = ProfileForm(request.POST)
    is_stale = put_on_stored(form, _stored(request))
    if form.is_valid():
        chosen = {name: value for name, value in form.cleaned_data.items() if name != "name"}
        with told_in(form):
            profile, by = Profile(**chosen), actor_of(request)
            desks = own_profile.change(user.id, name=form.cleaned_data["name"], profile=profile, by=by, made_from=user)
            counted(request, desks)
            locales.use(locale_of(request, profile=profile))
            messages.success(request, _("Your profile is saved."))
            return redirect("tenants:profile")
    return _page(request, form, status=409 if is_stale else 422)


@signed_in
@on_post(
    get="member",
    query="membership",
    write="account, audit row, member, session",
    trips=5,
    reads=4,
    writes=15,
    per="desk of the person",
    each=(4, 2, 12),
)
def found_zone(request: SignedInRequest) -> HttpResponse:
    """Store the time zone that the browser says, where the person has none: static/js/zone.js sends it once."""
    counted(request, own_profile.note_zone(request.user, request.POST.get("zone", "")[:60], by=actor_of(request)))
    return HttpResponse(status=204)


@in_person
@member(Role.AGENT)
@on_post(get="member", write="audit row, member", trips=5, reads=3, writes=12)
def signature(request: TenantRequest) -> HttpResponse:
    form = SignatureForm(request.POST)
    is_stale = put_on_stored(form, SignatureForm(initial={"signature": own_profile.signature_of(request.tenant)}))
    if form.is_valid():
        with told_in(form):
            own_profile.change_signature(request.tenant, form.cleaned_data["signature"], by=actor_of(request))
            messages.success(request, _("Your signature at %(desk)s is saved.") % {"desk": request.tenant.name})
            return redirect("tenants:profile")
    return _page(request, signature_form=form, status=409 if is_stale else 422)


def _page(
    request: SignedInRequest,
    form: ProfileForm | None = None,
    *,
    signature_form: SignatureForm | None = None,
    status: int = 200,
) -> HttpResponse:
    tenant = request.tenant
    if signature_form is None and tenant is not None and tenant.is_agent:
        signature_form = SignatureForm(initial={"signature": own_profile.signature_of(tenant)})
    return render(
        request,
        "tenants/profile.html",
        {"form": form or _stored(request), "signature_form": signature_form},
        status=status,
    )


def _stored(request: SignedInRequest) -> ProfileForm:
    user = request.user
    return ProfileForm(initial={"name": user.name, **asdict(Profile.parse(user.profile))})
