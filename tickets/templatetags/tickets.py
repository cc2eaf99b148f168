"""The small pieces that stand in every row of a list. Tags and not partials: a page of fifty rows would include a
partial some three hundred times, which costs more than all the rest of the page."""

from __future__ import annotations

from functools import lru_cache

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.templatetags.portal import hue, icon, initials

register = template.Library()


@register.simple_tag
@lru_cache(maxsize=64)
def priority(value: str, label: str) -> SafeString:
    return format_html('<span class="priority priority-{}">{}<span>{}</span></span>', value, icon(value), label)


@register.simple_tag
@lru_cache(maxsize=64)
def status(value: str, label: str) -> SafeString:
    return format_html('<span class="badge badge-{}">{}{}</span>', value, icon(value), label)


@register.simple_tag
@lru_cache(maxsize=4096)
def person(name: str, is_me: bool, short: bool = False) -> SafeString:
    """A person with an avatar; nobody for an empty name. `short` says only "You" for oneself."""
    if not name:
        return format_html(
            '<span class="person"><span class="avatar avatar-none" aria-hidden="true"></span>'
            '<span class="person-name muted">{}</span></span>',
            "Unassigned",
        )
    shown = ("You" if short else f"{name} (you)") if is_me else name
    return format_html(
        '<span class="person"><span class="avatar hue-{}" aria-hidden="true">{}</span>'
        '<span class="person-name" title="{}">{}</span></span>',
        hue(name),
        initials(name),
        name,
        shown,
    )
