"""Signing in with e-mail and password."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.hashers import make_password
from django.http import HttpRequest

from tenants.identity import accounts
from tenants.identity.models import User


class EmailBackend(BaseBackend):
    """Checks a password. An unknown address costs the same reads and the same hash, so nobody learns who is here."""

    def authenticate(
        self, request: HttpRequest | None, email: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        if not email or password is None:
            return None
        user = accounts.find_by_email(email)
        if user is None:
            make_password(password)
            return None
        if not user.check_password(password) or not user.is_active:
            return None
        return user

    def get_user(self, user_id: str) -> User | None:
        user = accounts.find_by_id(user_id)
        return user if user and user.is_active else None
