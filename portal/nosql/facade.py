"""Django models that look like models and are stored as items.

Django's auth and, later, its admin insist on a `Model` class. A facade is unmanaged, is built from an item
with `from_item`, and its manager answers nothing that its class has not declared: every other query raises.
"""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models

from portal.nosql.backend.base import refuse_sql


class FacadeManager(models.Manager[Any]):
    """A manager without a QuerySet. Subclasses add the few look-ups that an access pattern serves."""

    use_in_migrations = False

    def get_queryset(self) -> NoReturn:
        refuse_sql()


class Facade(models.Model):
    objects = FacadeManager()

    class Meta:
        abstract = True
        managed = False
        base_manager_name = "objects"

    def save(self, *args: Any, **kwargs: Any) -> None:
        refuse_sql()

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse_sql()
