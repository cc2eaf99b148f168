"""Show and edit articles, for members of the desk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from portal import plain_text
from portal.dynamo.client import alongside
from portal.errors import Conflict, Invalid, NotFound, Overtaken
from portal.web import markdown
from portal.web.access import member, on_get, on_post
from portal.web.conflicts import put_on_newer, put_on_stored, status_of, told_in
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told
from tickets.articles import article_changes, article_search, articles, catalogue, presenters, sections
from tickets.articles.articles import Text
from tickets.articles.catalogue import Section
from tickets.articles.forms import ArticleForm, SectionForm
from tickets.articles.stored import DraftItem, PublishedItem
from tickets.search.views import place_for_a_search

_TYPED: Final = 400  # characters of a query


# --- reading ---


@member(Role.VIEWER)
@on_get(get="article, help centre", query="help centre", trips=2, reads=8)
def list_articles(request: TenantRequest) -> HttpResponse:
    """List articles by section, or those that `?q=` finds. Agents see drafts, too."""
    tenant, typed = request.tenant, request.GET.get("q", "").strip()[:_TYPED]
    context: dict[str, Any] = {"q": typed, "problem": "", "hits": [], "groups": []}
    if typed:
        try:
            with place_for_a_search(tenant):
                context["hits"] = presenters.hits(article_search.find(tenant, typed, public=False))
        except Invalid as error:
            context["problem"] = error.message
    elif tenant.is_agent:
        found, known = alongside(partial(articles.rows, tenant), aside=partial(sections.listed, tenant))
        context |= {"groups": presenters.groups(known, found), "has_any": bool(found)}
    else:
        groups = catalogue.read(tenant, public=False).groups
        context |= {"groups": presenters.groups_of_readers(groups), "has_any": bool(groups)}
    return render(request, "articles/list.html", context)


@member(Role.VIEWER)
@on_get(get="article, help centre", trips=1, reads=5)
def article(request: TenantRequest, number: int) -> HttpResponse:
    """Show what readers see of an article; to those who write, the draft of one that is not published."""
    tenant = request.tenant
    draft: DraftItem | None = None
    shown: DraftItem | PublishedItem
    known = partial(sections.listed, tenant)
    if tenant.is_agent:
        read = partial(articles.draft, tenant, number)
        (draft, published), places = alongside(
            partial(alongside, read, aside=partial(_published, tenant, number)), aside=known
        )
        shown = published or draft
    else:
        shown, places = alongside(partial(articles.published, tenant, number), aside=known)
    context = {
        "article": presenters.shown(shown, places),
        "state": presenters.state(draft) if draft else None,
        "public_url": presenters.public_url_of(shown, tenant),
    }
    return render(request, "articles/article.html", context)


def _published(tenant: Any, number: int) -> PublishedItem | None:
    try:
        return articles.published(tenant, number)
    except NotFound:
        return None


@member(Role.AGENT)
@on_get(get="help centre", query="help centre", trips=1, reads=8)
def article_options(request: TenantRequest) -> HttpResponse:
    """Offer articles for an answer: for the title of the ticket, and what is written so far. One request."""
    text = " ".join(request.GET.get(name, "") for name in ("title", "body"))
    found = article_search.suggest(request.tenant, text, public=False)
    context = {"articles": presenters.suggested(found, request), "title": request.GET.get("title", "")}
    is_piece = "HX-Request" in request.headers
    return render(request, "articles/_options.html" if is_piece else "articles/suggested.html", context)


# --- writing ---


@member(Role.AGENT)
@on_get(get="help centre", trips=1, reads=2)
@on_post(get="article, help centre", write="article, audit row, help centre, membership", trips=7, reads=10, writes=60)
def new_article(request: TenantRequest) -> HttpResponse:
    known = sections.listed(request.tenant)
    form = ArticleForm(request.POST or None, sections=known)
    if request.method == "POST" and form.is_valid():
        if request.POST.get("then") == "preview":
            return _form_page(request, form, None, preview=form.text)
        with told_in(form):
            made = article_changes.create(request.tenant, form.text, by=actor_of(request))
            return _saved(request, made, form.text)
    return _form_page(request, form, None)


@member(Role.AGENT)
@on_get(get="article, help centre", trips=1, reads=3)
@on_post(get="article, help centre", write="article, audit row, help centre, membership", trips=6, reads=10, writes=50)
def edit_article(request: TenantRequest, number: int) -> HttpResponse:
    """Edit the draft. Each button but the preview saves it."""
    tenant = request.tenant
    draft, known = alongside(partial(articles.draft, tenant, number), aside=partial(sections.listed, tenant))
    if request.method != "POST":
        return _form_page(request, ArticleForm.of(Text.of(draft), int(draft.edit), known), draft)
    form = ArticleForm(request.POST, sections=known)
    if not form.is_valid():
        return _form_page(request, form, draft)
    if request.POST.get("then") == "preview":
        return _form_page(request, form, draft, preview=form.text)
    edit = form.cleaned_data["version"] or 0
    try:
        if request.POST.get("then") == "publish":
            return _publish(request, number, form.text, edit)
        article_changes.save(tenant, number, form.text, edit=edit, by=actor_of(request))
    except Overtaken:
        return _overtaken_page(request, form, articles.draft(tenant, number), known)
    except (Invalid, Conflict) as error:
        return _form_page(request, form, draft, error)
    messages.success(request, _("Draft saved."))
    return redirect("tickets:article_edit", number)


def _saved(request: TenantRequest, made: DraftItem, text: Text) -> HttpResponse:
    """Answer for a new article, which is published where that button was used."""
    number = int(made.number)
    if request.POST.get("then") == "publish":
        return _publish(request, number, text, int(made.edit))
    messages.success(request, _("Draft saved."))
    return redirect("tickets:article_edit", number)


def _publish(request: TenantRequest, number: int, text: Text, edit: int) -> HttpResponse:
    item = article_changes.publish(request.tenant, number, text, edit=edit, by=actor_of(request))
    messages.success(request, _("Version %(published)s is published.") % {"published": int(item.published)})
    return redirect("tickets:article", number)


def _form_page(
    request: TenantRequest,
    form: ArticleForm,
    draft: DraftItem | None,
    error: Invalid | Conflict | None = None,
    *,
    preview: Text | None = None,
    compared: dict[str, Any] | None = None,
) -> HttpResponse:
    if error is not None:
        field = getattr(error, "field", "") or ""
        form.add_error(field if field in form.fields else None, error.message)
    context = {
        "form": form,
        "article": presenters.shown(draft) if draft else None,
        "state": presenters.state(draft) if draft else None,
        "preview": {"title": preview.title, "body": markdown.render(preview.body)} if preview else None,
        "compared": compared,
    }
    status = 409 if compared or isinstance(error, Conflict) else status_of(form)
    return render(request, "articles/form.html", context, status=status)


def _overtaken_page(
    request: TenantRequest, form: ArticleForm, draft: DraftItem, known: Sequence[Section]
) -> HttpResponse:
    """Show the form as it was sent, ready to replace what somebody else has saved, beside what that is."""
    form.add_error(
        None, _("Somebody else has saved this article meanwhile. Save again to replace their text with yours.")
    )
    theirs, text = Text.of(draft), form.text
    put_on_newer(form, ArticleForm.of(theirs, int(draft.edit), known))
    return _form_page(request, form, draft, compared=presenters.compared(theirs, text))


@member(Role.AGENT)
@on_post(get="article, help centre", write="article, audit row, help centre, membership", trips=5, reads=6, writes=50)
def publish_article(request: TenantRequest, number: int) -> HttpResponse:
    draft = articles.draft(request.tenant, number)
    edit = request.POST.get("edit", "")
    try:
        return _publish(request, number, Text.of(draft), plain_text.whole_number(edit) or 0)
    except (Invalid, Conflict) as error:
        messages.error(request, error.message)
        return redirect("tickets:article_edit", number)


@member(Role.AGENT)
@on_post(get="article", write="article, audit row, help centre, membership", trips=4, reads=3, writes=50)
def withdraw_article(request: TenantRequest, number: int) -> HttpResponse:
    """Show an article to readers no more."""
    with refusal_told(request, Conflict):
        article_changes.withdraw(request.tenant, number, by=actor_of(request))
        messages.success(request, _("The article is a draft again. Readers do not see it any more."))
    return redirect("tickets:article", number)


@member(Role.ADMIN)
@on_get(get="article", trips=1, reads=2)
@on_post(get="article", write="article, audit row, help centre, membership", trips=8, reads=5, writes=100)
def delete_article(request: TenantRequest, number: int) -> HttpResponse:
    """Ask, then delete an article with all versions."""
    draft = articles.draft(request.tenant, number)
    if request.method == "POST":
        with refusal_told(request, Conflict):
            article_changes.delete(request.tenant, number, by=actor_of(request))
            messages.success(request, _("“%(title)s” was deleted.") % {"title": draft.title})
            return redirect("tickets:articles")
        return redirect("tickets:article", number)
    context = {"article": presenters.shown(draft), "state": presenters.state(draft)}
    return render(request, "articles/delete.html", context)


# --- versions ---


@member(Role.AGENT)
@on_get(get="article", query="article", trips=1, reads=10)
def list_versions(request: TenantRequest, number: int) -> HttpResponse:
    """List the versions that were published, newest first. Two requests at the same time."""
    before = request.GET.get("before", "")
    start = plain_text.whole_number(before) or 0
    draft, page = alongside(
        partial(articles.draft, request.tenant, number),
        aside=partial(articles.versions, request.tenant, number, before=start),
    )
    context = {
        "article": presenters.shown(draft),
        "versions": [presenters.version(one, current=int(draft.published)) for one in page.items],
        "older": int(page.items[-1].version) if page.items and page.last_key else 0,
        "is_first": not start,
    }
    return render(request, "articles/versions.html", context)


@member(Role.AGENT)
@on_get(get="article", trips=1, reads=3)
def show_version(request: TenantRequest, number: int, version: int) -> HttpResponse:
    """Show a version, and how the draft differs from it. Two requests at the same time."""
    draft, older = alongside(
        partial(articles.draft, request.tenant, number),
        aside=partial(articles.version, request.tenant, number, version),
    )
    context = {
        "article": presenters.shown(draft),
        "state": presenters.state(draft),
        "version": presenters.version(older, current=int(draft.published)),
        "text": presenters.shown(older),
        "compared": presenters.compared(Text.of(older), Text.of(draft)),
    }
    return render(request, "articles/version.html", context)


@member(Role.AGENT)
@on_post(get="article, help centre", write="article, audit row, help centre, membership", trips=6, reads=8, writes=45)
def restore_version(request: TenantRequest, number: int, version: int) -> HttpResponse:
    """Make an older text the draft."""
    edit = request.POST.get("edit", "")
    with refusal_told(request, Conflict):
        article_changes.restore(
            request.tenant,
            number,
            version,
            edit=plain_text.whole_number(edit) or 0,
            by=actor_of(request),
        )
        messages.success(
            request,
            _("The draft has the text of version %(version)s. Publish it so that readers see it.")
            % {"version": version},
        )
        return redirect("tickets:article_edit", number)
    return redirect("tickets:article_version", number, version)


# --- sections ---


@member(Role.ADMIN)
@on_get(get="help centre", trips=1, reads=2)
@on_post(get="help centre", write="audit row, help centre, membership", trips=4, reads=5, writes=15)
def edit_sections(request: TenantRequest) -> HttpResponse:
    """List the sections, and add one."""
    form = SectionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        with told_in(form):
            made = sections.add(request.tenant, given["name"], given["about"], by=actor_of(request))
            messages.success(request, _("“%(name)s” was added.") % {"name": made.name})
            return redirect("tickets:article_sections")
    context = {"sections": sections.listed(request.tenant), "form": form}
    return render(request, "articles/sections.html", context, status=422 if form.errors else 200)


@member(Role.ADMIN)
@on_get(get="help centre", trips=1, reads=2)
@on_post(get="help centre", write="audit row, help centre, membership", trips=5, reads=5, writes=15)
def edit_section(request: TenantRequest, section: str) -> HttpResponse:
    known = next((one for one in sections.listed(request.tenant) if one.id == section), None)
    if known is None:
        raise NotFound(_("There is no such section."))
    stored = {"name": known.name, "about": known.about}
    form = SectionForm(request.POST or None, initial=stored)
    is_stale = form.is_bound and put_on_stored(form, SectionForm(initial=stored))
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        with told_in(form):
            sections.rename(request.tenant, section, given["name"], given["about"], seen=known, by=actor_of(request))
            messages.success(request, _("Changes saved."))
            return redirect("tickets:article_sections")
    context = {"section": known, "form": form}
    status = 409 if is_stale else 422 if form.errors else 200
    return render(request, "articles/section.html", context, status=status)


@member(Role.ADMIN)
@on_post(get="help centre", write="audit row, help centre, membership", trips=4, reads=3, writes=15)
def move_section(request: TenantRequest, section: str) -> HttpResponse:
    """Move a section up or down by one, or remove it."""
    acts = {
        "up": partial(sections.move, by_places=-1),
        "down": partial(sections.move, by_places=1),
        "remove": sections.remove,
    }
    act: Any = acts.get(request.POST.get("act", ""))
    if act is None:
        raise NotFound(_("There is no such step."))
    with refusal_told(request, Conflict):
        act(request.tenant, section, by=actor_of(request))
    return redirect("tickets:article_sections")
