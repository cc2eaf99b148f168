"""Template tags of every page: form guard, times, Markdown, avatars."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from django import template
from django.middleware.csrf import get_token
from django.template.base import Parser, Token
from django.templatetags.static import static
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from portal import clock
from portal.web import access
from portal.web.markdown import render
from portal.web.stash import PAGE_MARK

register = template.Library()


@register.simple_tag(takes_context=True)
def form_guard(context: template.Context, kept: str = "") -> SafeString:
    """Return the two hidden inputs of every POST form: Django's CSRF token and the mark of person and tenant.

    `kept` is the mark of a form that is sent again. It stands where nobody can say who is calling, because the
    engine is down; where the tenant is known, the page belongs to that one.
    """
    request = context["request"]
    token = getattr(request, "csrf_input", None)  # each call of get_token makes another mask of the same secret
    if token is None:
        token = format_html('<input type="hidden" name="csrfmiddlewaretoken" value="{}">', get_token(request))
        request.csrf_input = token
    tenant = getattr(request, "tenant", None)
    mark = tenant.page_mark if tenant else kept
    if not mark:
        return token
    return token + format_html('<input type="hidden" name="{}" value="{}">', PAGE_MARK, mark)


@register.tag
def switched_off_while_closing(parser: Parser, token: Token) -> SwitchedOffNode:
    """Switch off each form in this block whose sending would be refused, where the desk at work is closing."""
    nodes = parser.parse(("end_switched_off",))
    parser.delete_first_token()
    return SwitchedOffNode(nodes)


class SwitchedOffNode(template.Node):
    """Renders what it holds; a closing desk's forms get a disabled fieldset around all that is in them.

    One place knows which forms a closing desk takes: what each view declares. So no template has to ask, and a new
    form is switched off without being told to.
    """

    def __init__(self, nodes: template.NodeList) -> None:
        self.nodelist = nodes

    def render(self, context: template.Context) -> SafeString:
        page = self.nodelist.render(context)
        request = context.get("request")
        if not getattr(getattr(request, "tenant", None), "closes_at", ""):
            return page
        return mark_safe(_FORM.sub(lambda form: _switched_off(form, request), page))  # noqa: S308  # rendered above


_FORM = re.compile(r"(<form\b[^>]*>)(.*?)(</form>)", re.DOTALL)
_OFF = '<fieldset class="switched-off" disabled>'
_POSTS = re.compile(r'\bmethod="post"', re.IGNORECASE)
_ACTION = re.compile(r'\baction="([^"?#]*)')


def _switched_off(form: re.Match[str], request: Any) -> str:
    begin, inner, end = form.groups()
    action = _ACTION.search(begin)
    if (
        _OFF in inner
        or not _POSTS.search(begin)
        or not access.is_shut_while_closing((action and action[1]) or request.path)
    ):
        return form[0]
    return f"{begin}{_OFF}{inner}</fieldset>{end}"


_STYLES = ("variables", "base", "components", "queue", "ticket", "dashboard", "desk", "pages", "search")
_MODULES = (
    *("page", "forms", "limits", "menus", "selection", "drafts", "keyboard", "neighbours", "updates", "folds"),
    "search",
)


@register.simple_tag
@lru_cache(maxsize=1)
def assets() -> SafeString:
    """Name what every page loads: style sheets, htmx, our modules. The same for all pages, so addressed once."""
    links = [format_html('<link rel="icon" href="{}" type="image/svg+xml">', static("img/favicon.svg"))]
    links += [format_html('<link rel="stylesheet" href="{}">', static(f"css/{name}.css")) for name in _STYLES]
    links.append(format_html('<script src="{}" defer></script>', static("django_htmx/htmx-2.min.js")))
    links += [format_html('<script type="module" src="{}"></script>', static(f"js/{name}.js")) for name in _MODULES]
    return mark_safe("\n  ".join(links))  # noqa: S308  # of safe strings


@register.simple_tag
@lru_cache(maxsize=128)
def icon(name: str) -> SafeString:
    """Return a symbol of the page's sprite (`portal/_sprite.html`), for the eye only."""
    return format_html(
        '<svg class="icon icon-{}" aria-hidden="true" focusable="false"><use href="#i-{}"/></svg>', name, name
    )


_LONG_WORD = re.compile(r"\S{24,}")
_BREAKS = re.compile(r"(?<=[@/.,?&=_])(?=[^/\W])")


@register.filter
def breakable(text: str) -> SafeString:
    """Return text whose long words, such as addresses, break behind their parts where they do not fit, and not within
    them."""
    plain, words = _LONG_WORD.split(text), _LONG_WORD.findall(text)
    broken = ["<wbr>".join(map(escape, _BREAKS.split(word))) for word in words]
    joined = "".join(escape(before) + after for before, after in zip_longest(plain, broken, fillvalue=""))
    return mark_safe(joined)  # noqa: S308  # of escaped pieces


_CODE = re.compile(r"`([^`]+)`")


@register.filter
def coded(text: str) -> SafeString:
    """Return text of ours whose words between backticks are shown as code."""
    return mark_safe(_CODE.sub(r"<code>\1</code>", escape(text)))  # noqa: S308  # escaped before


@register.filter
def stamps_as_moments(text: str) -> str:
    """Return a text as it is, but a stored stamp as the pages write a moment."""
    return clock.in_words(text)


@register.filter
def when(moment: datetime | None) -> SafeString | str:
    """Return a moment as a person says it, with the exact time for who asks."""
    if moment is None:
        return ""
    exact = f"{moment.day} {moment:%b %Y, %H:%M} UTC"
    # Not format_html: none of the three can hold markup, and a page shows dozens.
    return mark_safe(f'<time datetime="{moment.isoformat()}" title="{exact}">{_ago(moment)}</time>')  # noqa: S308


def _ago(moment: datetime) -> str:
    now = clock.now()
    seconds = (now - moment).total_seconds()
    if seconds < 45:
        return "just now"
    if seconds < 3600:
        return f"{max(1, round(seconds / 60))} min ago"
    if seconds < 86400:
        return f"{round(seconds / 3600)} h ago"
    if seconds < 7 * 86400:
        days = round(seconds / 86400)
        return "yesterday" if days == 1 else f"{days} days ago"
    return f"{moment.day} {moment:%b}" if moment.year == now.year else f"{moment.day} {moment:%b %Y}"


@register.filter
def markdown(text: str) -> SafeString:
    return render(text)


@register.filter
@lru_cache(maxsize=4096)
def initials(name: str) -> str:
    words = [w for w in str(name).split() if w[0].isalnum()] or ["?"]
    return (words[0][0] + (words[-1][0] if len(words) > 1 else "")).upper()


@register.filter
@lru_cache(maxsize=4096)
def hue(name: str) -> int:
    """Return one of eight colours, by a digest of the name."""
    return hashlib.blake2b(str(name).encode(), digest_size=1).digest()[0] % 8
