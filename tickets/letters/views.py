"""Show the letters of a desk: those that could not be filed, the ledger of all, and each letter as it came."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from portal.dynamo import paging
from portal.errors import Conflict, Invalid, NotFound
from portal.mailing import letter_process, letters
from portal.mailing.letters import Unreadable
from portal.objects.object_store import ObjectStore
from portal.web.access import member
from portal.web.heavy_work import heavy, heavy_to_read
from tenants.tenancy import tenant_directory
from tenants.tenancy.request import TenantRequest, actor_of
from tenants.tenancy.roles import Role
from tickets.letters import arrival, filing, ledger, presenters, reconciling
from tickets.letters.stored import LetterItem, raw_key
from tickets.replies import mail_settings

PAGE_SIZE: Final = 50
HELD_AT_ONCE: Final = 500  # letters that one press of the button files
# A letter's HTML is a stranger's: nothing in it runs, is sent or is loaded, but pictures when asked for.
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:{images}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-popups"
)


@member(Role.AGENT)
@require_safe
def all_letters(request: TenantRequest) -> HttpResponse:
    """List all letters, the newest first: one Query."""
    return _list(request, is_waiting=False)


@member(Role.AGENT)
@require_safe
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
@require_safe
def letter(request: TenantRequest, letter: str) -> HttpResponse:
    """Show what became of a letter: one GetItem."""
    return render(request, "letters/letter.html", {"letter": presenters.letter(_letter(request, letter))})


@member(Role.AGENT)
@require_safe
def raw_letter(request: TenantRequest, letter: str) -> HttpResponse:
    """Download a letter as it came: one GetItem, and one read of its object."""
    item = _letter(request, letter)
    name = f"letter-{letter[:12]}.eml"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return HttpResponse(_raw(request, item), content_type="message/rfc822", headers=headers)


@member(Role.AGENT)
@require_safe
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
        context["reason"] = str(error)
    answer = render(request, "letters/original.html", context)
    answer["Content-Security-Policy"] = _POLICY.format(images=" https: http:" if has_images else "")
    answer["Referrer-Policy"] = "no-referrer"
    return answer


@member(Role.AGENT)
@require_POST
@heavy
def file_letter(request: TenantRequest, letter: str) -> HttpResponse:
    """File a letter that waits, as a person of the desk wants it."""
    item = _letter(request, letter)
    if item.state not in ledger.OPEN:
        messages.warning(request, ledger.CLOSED)
        return redirect("tickets:letter", letter)
    filed = filing.file(request.tenant.tenant_id, item.object, approved=True)
    if filed is None:
        messages.error(request, "The letter itself is not there any more. Discard its line.")
    elif filed.state == ledger.FILED:
        messages.success(request, f"Filed to ticket #{int(filed.number)}.")
        return redirect("tickets:ticket", int(filed.number))
    else:
        messages.error(request, f"It still cannot be filed. {filed.reason}")
    return redirect("tickets:letter", letter)


@member(Role.AGENT)
@require_POST
def file_held(request: TenantRequest) -> HttpResponse:
    """Let the letters be filed that were held back, some hundreds at a time. Pressed again it goes on with the rest."""
    tenant = tenant_directory.get(request.tenant.tenant_id)
    held = ledger.held(request.tenant.repository, most=HELD_AT_ONCE + 1)
    arrival.ask_for_held(tenant, held[:HELD_AT_ONCE])
    messages.success(request, presenters.filing_held(len(held[:HELD_AT_ONCE]), has_more=len(held) > HELD_AT_ONCE))
    return redirect("tickets:letters_waiting")


@member(Role.AGENT)
@require_POST
def discard_letter(request: TenantRequest, letter: str) -> HttpResponse:
    """Let a letter that waits become no ticket. It stays in the list of all letters."""
    item = _letter(request, letter)
    try:
        ledger.discard(request.tenant.repository, item)
    except NotFound as error:
        messages.warning(request, error.message)
    else:
        messages.success(request, "Discarded. The list of all letters still has it.")
    return redirect("tickets:letters_waiting")


@member(Role.AGENT)
@require_POST
def block_sender(request: TenantRequest, letter: str) -> HttpResponse:
    """Block the sender of a letter, from its own page or from the ticket that it became."""
    item = _letter(request, letter)
    try:
        is_new = mail_settings.block(request.tenant, item.sender, by=actor_of(request))
    except (Conflict, Invalid) as error:
        messages.error(request, error.message)
    else:
        blocked = "is blocked: its letters become no tickets" if is_new else "was blocked already"
        messages.success(
            request, f"{item.sender} {blocked}. Admins can undo this in the settings of the desk\u2019s mail."
        )
    if "from_ticket" in request.POST and int(item.number):
        return redirect("tickets:ticket", int(item.number))
    return redirect("tickets:letter", letter)


@member(Role.ADMIN)
@require_POST
def reconcile(request: TenantRequest) -> HttpResponse:
    """Compare the bucket with the ledger, and file what was left behind."""
    messages.success(request, presenters.reconciled(reconciling.desk(request.tenant.tenant_id)))
    return redirect("tickets:letters")


def _letter(request: TenantRequest, digest: str) -> LetterItem:
    return ledger.get(request.tenant.repository, digest)


def _raw(request: TenantRequest, item: LetterItem) -> bytes:
    if not item.object:
        raise NotFound("This letter was deleted as it came, with the data of a person.")
    tenant_id = request.tenant.tenant_id
    return ObjectStore("tenant", tenant_id).get(raw_key(tenant_id, item.object), most=arrival.MOST_BYTES)
