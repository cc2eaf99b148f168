"""Change the sections of the help centre and their order. Admins and owners do this."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import plain_text
from portal.dynamo.store import Action, Transaction
from portal.errors import Forbidden, Invalid, NotFound, Overtaken
from portal.web import locales
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry, ReadChange
from tenants.tenancy.context import TenantContext
from tickets.articles import catalogue, stored
from tickets.articles.article_changes import commit
from tickets.articles.catalogue import Section
from tickets.articles.stored import CENTRE, CentreItem

SECTIONS_LIMIT: Final = 30
NAME_LIMIT: Final = 80  # characters
ABOUT_LIMIT: Final = 200  # characters
_GONE: Final = gettext_noop("This section is gone.")


def listed(tenant: TenantContext) -> tuple[Section, ...]:
    """Return the sections in their order: one GetItem."""
    return catalogue.sections_of(catalogue.read_centre(tenant))


def add(tenant: TenantContext, name: str, about: str = "", *, by: Actor) -> Section:
    """Add a section behind the others. Raises Invalid, with the field; Forbidden, Overtaken."""
    made = _cleaned(Section(uuid.uuid4().hex[:12], name, about))

    def choose(sections: list[Section]) -> list[Section]:
        if len(sections) >= SECTIONS_LIMIT:
            raise Invalid(
                _("A help centre can have up to %(limit)s sections.") % {"limit": SECTIONS_LIMIT}, field="name"
            )
        return [*sections, _unlike(made, sections)]

    _change(tenant, choose, by)
    return made


def rename(
    tenant: TenantContext, section_id: str, name: str, about: str, *, seen: Section | None = None, by: Actor
) -> None:
    """Give a section another name and description, where it is still as it was `seen`.

    Raises Invalid, with the field; NotFound, Forbidden, Overtaken.
    """
    renamed = _cleaned(Section(section_id, name, about))

    def choose(sections: list[Section]) -> list[Section]:
        at = _place(sections, section_id)
        if seen not in (None, sections[at]):
            raise Overtaken(_("Somebody else has just changed this section. Please check and try again."))
        others = sections[:at] + sections[at + 1 :]
        named = _unlike(renamed, others)._replace(more=sections[at].more)
        return [*sections[:at], named, *sections[at + 1 :]]

    _change(tenant, choose, by)


def move(tenant: TenantContext, section_id: str, by_places: int, *, by: Actor) -> None:
    """Move a section up (below 0) or down by some places, at most to an end. Raises NotFound, Forbidden, Overtaken."""

    def choose(sections: list[Section]) -> list[Section]:
        at = _place(sections, section_id)
        moved = sections.pop(at)
        sections.insert(max(0, at + by_places), moved)
        return sections

    _change(tenant, choose, by)


def remove(tenant: TenantContext, section_id: str, *, by: Actor) -> None:
    """Remove a section. Its articles stay, without one. Raises NotFound, Forbidden, Overtaken."""

    def choose(sections: list[Section]) -> list[Section]:
        del sections[_place(sections, section_id)]
        return sections

    _change(tenant, choose, by)


def _place(sections: list[Section], section_id: str) -> int:
    for at, one in enumerate(sections):
        if one.id == section_id:
            return at
    raise NotFound(_(_GONE))


def _cleaned(section: Section) -> Section:
    name, about = plain_text.line(section.name), plain_text.line(section.about)
    if not name:
        raise Invalid(_("Enter a name."), field="name")
    within = locales.within
    return Section(section.id, within(name, NAME_LIMIT, "name"), within(about, ABOUT_LIMIT, "about"))


def _unlike(section: Section, others: list[Section]) -> Section:
    if any(one.name.casefold() == section.name.casefold() for one in others):
        raise Invalid(_("There is a section with this name already."), field="name")
    return section


def _change(tenant: TenantContext, choose: Callable[[list[Section]], list[Section]], by: Actor) -> None:
    """Store the sections that `choose` makes of the stored ones."""
    if not tenant.is_admin:
        raise Forbidden(_("Only admins and owners can change sections."))

    def build() -> ReadChange | None:
        item = catalogue.read_centre(tenant)
        before = [*catalogue.sections_of(item)]
        after = choose(before[:])
        if after == before:
            return None
        seen = CentreItem.sections == item.sections
        if not before:
            seen |= CentreItem.sections.does_not_exist()
        transaction = Transaction()
        key = CentreItem(tenant.repository.key(stored.centre), CENTRE)
        actions: list[Action] = [
            CentreItem.sections.set(stored.sections_text((*one[:3], *one.more) for one in after)),
            CentreItem.edition.set(stored.new_edition()),
        ]
        transaction.update(key, actions, condition=seen)
        was, now = (", ".join(section.name for section in some) for some in (before, after))
        entry = AuditEntry.of_tenant(
            tenant, AuditAction.HELP_SECTIONS_CHANGED, by, before={"sections": was}, after={"sections": now}
        )
        return transaction, [entry]

    commit(tenant, build)
