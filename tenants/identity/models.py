"""The account as Django's auth sees it: a facade over `AccountItem`."""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import models
from django.utils.crypto import salted_hmac

from portal.errors import ConditionFailed
from portal.nosql.planner.facade import Facade, FacadeManager
from tenants.identity.items import AccountItem
from tenants.identity.keys import user as user_key


class User(AbstractBaseUser, Facade):
    id = models.CharField(primary_key=True, max_length=32)
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=100)
    is_active = models.BooleanField(default=True)
    is_operator = models.BooleanField(default=False)
    session_epoch = models.PositiveIntegerField(default=0)
    signed_in_at = models.CharField(max_length=40, default="")
    second_factors = models.CharField(max_length=40, default="")
    # Removes the field: `signed_in_at` stands for it, and is written by accounts.py.
    last_login = None

    objects: ClassVar[FacadeManager] = FacadeManager()
    stored_password = ""  # as it was read, while `password` may be made anew

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = ["name"]

    class Meta:
        managed = False

    @classmethod
    def from_item(cls, item: AccountItem) -> User:
        user = cls(
            id=item.user_id,
            email=item.email,
            name=item.name,
            password=item.password,
            is_active=item.is_active,
            is_operator=item.is_operator,
            session_epoch=int(item.session_epoch),
            signed_in_at=item.signed_in_at or "",
            second_factors=item.second_factors or "",
        )
        user._state.adding = False
        user.stored_password = item.password
        return user

    def save(self, *args: object, **kwargs: object) -> None:
        # check_password() saves a hash made with outdated parameters; whatever else changes is written by accounts.py.
        if kwargs.get("update_fields") == ["password"]:
            # A password that was changed meanwhile stays: the hash is of the one before.
            with suppress(ConditionFailed):
                AccountItem(user_key(self.id)).update(
                    actions=[AccountItem.password.set(self.password)],
                    condition=AccountItem.password == self.stored_password,
                )
                self.stored_password = self.password
            return
        Facade.save(self)

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        # The epoch makes "sign out everywhere" one write: sessions made before it no longer match.
        return salted_hmac(
            "tenants.User.session", f"{self.password}|{self.session_epoch}", secret=secret, algorithm="sha256"
        ).hexdigest()
