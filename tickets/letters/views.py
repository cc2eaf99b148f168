"""Show the letters of a desk: those that could not be filed, the ledger of all, and each letter as it came."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from portal.dynamo import paging
from portal.errors import Conflict, Invalid, NotFound
from portal.mailing import letter_process, letters
from portal.mailing.letters import Unreadable
from portal.objects.object_store import ObjectStore
from portal.web.access import member, on_get, on_post
from portal.web.heavy_work import heavy, heavy_to_read
from portal.web.locales import stored_text
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told
from tickets.letters import arrival, deciding, ledger, presenters, reconciling
from tickets.letters.stored import LetterItem, raw_key
from tickets.replies import mail_settings

PAGE_SIZE: Final = 50
# A letter's HTML is a stranger's: nothing in it runs, is sent or is loaded, but pictures when asked for.
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:{images}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-popups"
)


@member(Role.AGENT)
@on_get(query="letters by time", trips=1, reads=8)
def all_letters(request: TenantRequest) -> HttpResponse:
    """List all letters, the newest first: one Query."""
    return _list(request, is_waiting=False)


@member(Role.AGENT)
@on_get(query="letters that wait", trips=1, reads=8)
def waiting_letters(request: TenantRequest) -> HttpResponse:
    """List the letters that could not be filed: one Query."""
    return _list(request, is_waiting=True)


def _list(request: TenantRequest, *, is_waiting: bool) -> HttpResponse:
    after, query = request.GET.get("after", ""), ("letters", is_waiting)
    tenant = request.tenant
    position = paging.load(after, tenant_id=tenant.tenant_id, query=query) if after else None
    read = ledger.waiting if is_waiting else ledger.letters
    rows, end = read(tenant.repository, after=position, limit=PAGE_SIZE)
    more = end and paging.dump(end, tenant_id=tenant.tenant_id, query=query)
    context = {
        "letters": [presenters.row(one) for one in rows],
        "is_waiting": is_waiting,
        "has_held": is_waiting and any(one.state == ledger.HELD for one in rows),
        "is_first": not after,
        "next": more,
        "own_address": presenters.own_address(tenant),
    }
    return render(request, "letters/list.html", context)


@member(Role.AGENT)
@on_get(get="letter", trips=1, reads=2)
def letter(request: TenantRequest, letter: str) -> HttpResponse:
    """Show what became of a letter: one GetItem."""
    return render(request, "letters/letter.html", {"letter": presenters.letter(_letter(request, letter))})


@member(Role.AGENT)
@on_get(get="letter", trips=1, reads=2)
def raw_letter(request: TenantRequest, letter: str) -> HttpResponse:
    """Download a letter as it came: one GetItem, and one read of its object."""
    item = _letter(request, letter)
    name = f"letter-{letter[:12]}.eml"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return HttpResponse(_raw(request, item), content_type="message/rfc822", headers=headers)


@member(Role.AGENT)
@on_get(get="letter", trips=1, reads=2)
@heavy_to_read  # a hostile letter takes seconds, and hundreds of megabytes
def original_letter(request: TenantRequest, letter: str) -> HttpResponse:
    """Show a letter with its own looks, in a page that can do nothing; `?images=1` loads its pictures."""
    item = _letter(request, letter)
    has_images = request.GET.get("images") == "1"
    context = {"letter": presenters.letter(item), "has_images": has_images}
    try:
        read = letter_process.read(_raw(request, item))
        html = letters.images_allowed(read.html) if has_images else read.html
        context |= presenters.original(read, html)
    except Unreadable as error:
        context["reason"] = stored_text(str(error))
    answer = render(request, "letters/original.html", context)
    answer["Content-Security-Policy"] = _POLICY.format(images=" https: http:" if has_images else "")
    answer["Referrer-Policy"] = "no-referrer"
    return answer


@member(Role.AGENT)
@on_post(
    get="address, address of a requester, letter, mail settings, requester",
    write="address of a requester, audit row, counter, letter, outbox row, requester, ticket, waiting letters",
    trips=14,
    reads=15,
    writes=50,
)
@heavy
def file_letter(request: TenantRequest, letter: str) -> HttpResponse:
    """File a letter that waits, as a person of the desk wants it."""
    try:
        filed = deciding.file(request.tenant, letter, by=actor_of(request))
    except Conflict as error:
        messages.warning(request, error.message)
        return redirect("tickets:letter", letter)
    messages.success(request, _("Filed to ticket #%(number)s.") % {"number": int(filed.number)})
    return redirect("tickets:ticket", int(filed.number))


@member(Role.AGENT)
@on_post(query="letters that wait", write="audit row", trips=6, reads=10, writes=10)
def file_held(request: TenantRequest) -> HttpResponse:
    """Let the letters be filed that were held back, some hundreds at a time. Pressed again it goes on with the rest."""
    begun, has_more = deciding.file_held(request.tenant, by=actor_of(request))
    messages.success(request, presenters.filing_held(begun, has_more=has_more))
    return redirect("tickets:letters_waiting")


@member(Role.AGENT)
@on_post(get="letter", write="audit row, letter, waiting letters", trips=6, reads=3, writes=20)
def discard_letter(request: TenantRequest, letter: str) -> HttpResponse:
    """Let a letter that waits become no ticket. It stays in the list of all letters."""
    try:
        deciding.discard(request.tenant, letter, by=actor_of(request))
    except Conflict as error:
        messages.warning(request, error.message)
    else:
        messages.success(request, _("Discarded. The list of all letters still has it."))
    return redirect("tickets:letters_waiting")


@member(Role.AGENT)
@on_post(
    get="address, letter, mail settings, member",
    write="audit row, mail settings, membership",
    trips=8,
    reads=12,
    writes=15,
)
def block_sender(request: TenantRequest, letter: str) -> HttpResponse:
    """Block the sender of a letter, from its own page or from the ticket that it became."""
    item = _letter(request, letter)
    with refusal_told(request, Conflict, Invalid):
        is_new = mail_settings.block(request.tenant, item.sender, by=actor_of(request))
        said = (
            _("%(sender)s is blocked: its letters become no tickets.")
            if is_new
            else _("%(sender)s was blocked already.")
        )
        undo = _("Admins can undo this in the settings of the desk’s mail.")  # noqa: RUF001
        messages.success(request, f"{said % {'sender': item.sender}} {undo}")
    if "from_ticket" in request.POST and int(item.number):
        return redirect("tickets:ticket", int(item.number))
    return redirect("tickets:letter", letter)


@member(Role.ADMIN)
@on_post(query="letters by time, letters that wait", write="waiting letters", trips=7, reads=15, writes=2)
def reconcile(request: TenantRequest) -> HttpResponse:
    """Compare the bucket with the ledger, and file what was left behind."""
    messages.success(request, presenters.reconciled(reconciling.desk(request.tenant.tenant_id)))
    return redirect("tickets:letters")


def _letter(request: TenantRequest, digest: str) -> LetterItem:
    return ledger.get(request.tenant.repository, digest)


def _raw(request: TenantRequest, item: LetterItem) -> bytes:
    if not item.object:
        raise NotFound(_("This letter was deleted as it came, with the data of a person."))
    tenant_id = request.tenant.tenant_id
    return ObjectStore("tenant", tenant_id).get(raw_key(tenant_id, item.object), most=arrival.MOST_BYTES)
