"""Find a person in saved views, and replace them where they are erased: addresses in names and filters, and the member
whose tickets a view lists. A member's own views go with the membership."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

from django.utils.translation import gettext_noop

from portal.dynamo.store import Transaction
from portal.schema import keys
from tenants.audit_trail import recording
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalData, PersonalPlace
from tickets.saved_views import saved_views
from tickets.saved_views.saved_views import NAME_LIMIT, View
from tickets.saved_views.stored import ViewsItem


def _items(tenant: TenantContext, person: DeskPerson) -> Iterator[ViewsItem]:
    return tenant.repository.query_all(ViewsItem, keys.tenant, consistent=True)


def _places(person: DeskPerson, names: Collection[str], item: ViewsItem) -> Iterator[PersonalPlace]:
    views = saved_views.views_of(item)
    if item.owner in person.accounts:
        yield PersonalPlace(
            gettext_noop("the member's own views"), excerpt=", ".join(view.name for view in views), stays=True
        )
        return
    for view in views:
        if person.is_who(view.params.get("resolver", "")):
            yield PersonalPlace(gettext_noop("saved view, the member of its list"), excerpt=view.name)
        if any(person.mail.is_in(text) for text in (view.name, *view.params.values())):
            yield PersonalPlace(gettext_noop("saved view, its name or filter"), is_text=True, excerpt=view.name)


def _replaced(view: View, new: NewName) -> View:
    params = view.params
    if new.person.is_who(params.get("resolver", "")):
        params["resolver"] = new.pseudonym
    if not new.texts:
        return replace(view, query=urlencode(params))
    params = {name: new.person.mail.replaced(text, new.name) for name, text in params.items()}
    name = new.person.mail.replaced(view.name, new.name)[:NAME_LIMIT]
    return replace(view, name=name, query=urlencode(params))


def _replace(tenant: TenantContext, new: NewName, item: ViewsItem) -> None:
    """Replace a person in the views of one owner. Raises TransactionRefused where somebody changes them."""
    item.views = saved_views.texts_of([_replaced(view, new) for view in saved_views.views_of(item)])
    seen, item.version = int(item.version), int(item.version) + 1
    transaction = Transaction()
    transaction.put(item, condition=ViewsItem.version == seen)
    recording.commit(transaction, [])


PEOPLE: Final = PersonalData(_items, _places, _replace)
