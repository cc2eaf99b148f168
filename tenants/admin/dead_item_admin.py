"""Show operators what workers have given up, to have it done after all or to drop it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from django.contrib import admin, messages
from django.template.response import TemplateResponse
from django.urls import reverse

from portal.errors import PortalError, Unavailable
from portal.nosql.admin import DynamoAdmin, Notice
from portal.nosql.planner.facade import Facade
from tenants.admin.named_columns import NamedColumns
from tenants.admin.partition_filters import TenantInput
from tenants.operators.operator_site import actor

NOTICED: Final = 10  # dead items that the front page counts


class DeadItemAdmin(NamedColumns, DynamoAdmin):
    """An admin of items that wait for an operator. A subclass explains its object actions, "_replay" and "_drop"."""

    may_change = True
    list_filter = (TenantInput,)
    actions = ("replay", "drop")
    replayed: ClassVar[str]  # the sentence after a replay

    def replay_one(self, obj: Any, *, by: Any) -> None:
        """Have it done after all. Raises PortalError."""
        raise NotImplementedError

    def drop_one(self, obj: Any, *, by: Any) -> None:
        """Remove it. Raises PortalError."""
        raise NotImplementedError

    @admin.action(description="Replay: have them done after all")
    def replay(self, request: Any, queryset: Any) -> None:
        self._each(request, queryset, self.replay_one, "replayed")

    @admin.action(description="Drop: they are not done")
    def drop(self, request: Any, queryset: Any) -> TemplateResponse | None:
        if "confirmed" in request.POST:
            self._each(request, queryset, self.drop_one, "dropped")
            return None
        chosen = list(queryset)
        many = self.opts.verbose_name if len(chosen) == 1 else self.opts.verbose_name_plural
        context = {
            **self.admin_site.each_context(request),
            "title": f"Drop {len(chosen)} {many}?",
            "chosen": chosen,
            "opts": self.opts,
            "back": request.get_full_path(),
        }
        return TemplateResponse(request, "nosql_admin/drop_question.html", context)

    def _each(self, request: Any, queryset: Any, act: Callable[..., None], done: str) -> None:
        number = 0
        for obj in queryset:
            try:
                act(obj, by=actor(request))
                number += 1
            except Unavailable:
                raise
            except PortalError as error:
                messages.error(request, f"{obj}: {error.message}")
        messages.success(request, f"{number} {done}.")

    def perform(self, request: Any, obj: Any, action: str, *, reason: str) -> str:
        if action == "_replay":
            self.replay_one(obj, by=actor(request))
            return self.replayed
        self.drop_one(obj, by=actor(request))
        return "It is dropped."

    def performed_url(self, request: Any) -> str:
        return _list_url(self.model)


def notice(facade: type[Facade], order: int, *, one: str, many: str) -> list[Notice]:
    """Report on the front page that there are such items, counted up to a few. `one` and `many` follow the number."""
    number = len(facade.objects.all()[: NOTICED + 1])
    if not number:
        return []
    counted = f"More than {NOTICED}" if number > NOTICED else str(number)
    return [Notice(order, f"{counted} {one if number == 1 else many}", _list_url(facade), "error")]


def _list_url(facade: Any) -> str:
    return reverse(f"admin:{facade._meta.app_label}_{facade._meta.model_name}_changelist")
