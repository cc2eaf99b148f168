"""Accounts: who can sign in. Written in transactions that keep the e-mail address unique."""

from __future__ import annotations

import uuid

from django.contrib.auth.hashers import make_password

from portal import clock
from portal.dynamo import keys, platform
from portal.dynamo.repository import Action, Transaction
from portal.errors import ConditionFailed, Conflict, Invalid, NotFound, TransactionRefused
from tenants.items import AccountItem, UniqueItem
from tenants.models import User


def new_id() -> str:
    """A fresh user or tenant id: 32 lower-case hex digits."""
    return uuid.uuid4().hex


def normal_address(address: str) -> str:
    return address.strip().casefold()


def find_by_id(user_id: str) -> User | None:
    try:
        item = AccountItem.get(keys.user(user_id), consistent_read=True)
    except (AccountItem.DoesNotExist, ValueError):
        return None
    return User.from_item(item)


def find_by_email(address: str) -> User | None:
    """Two GetItems, one after the other: the address gives the id, the id gives the account."""
    try:
        owner = UniqueItem.get(keys.email(address), consistent_read=True).owner
    except (UniqueItem.DoesNotExist, ValueError):
        return None
    return find_by_id(owner)


def create(
    *,
    email: str,
    name: str,
    password: str | None,
    is_operator: bool = False,
    user_id: str | None = None,
    password_hash: str | None = None,
) -> User:
    """Create an account; `password_hash` stands in for `password` where many share one (seeding).

    Raises Conflict when the address is taken, Invalid when it is not an address.
    """
    try:
        email_key = keys.email(email)
    except ValueError as error:
        raise Invalid("That is not an e-mail address.", field="email") from error
    user_id = user_id or new_id()
    account = AccountItem(
        keys.user(user_id),
        user_id=user_id,
        email=normal_address(email),
        name=name.strip() or email.split("@")[0],
        password=password_hash or make_password(password),
        is_active=True,
        is_operator=is_operator,
        session_epoch=0,
        created_at=clock.stamp(),
    )
    transaction = Transaction()
    transaction.put(UniqueItem(email_key, owner=account.user_id), condition=UniqueItem.pk.does_not_exist())
    transaction.put(account, condition=AccountItem.pk.does_not_exist())
    try:
        platform.transact(transaction)
    except TransactionRefused as error:
        raise Conflict(f"{account.email} has an account already.") from error
    return User.from_item(account)


def set_password(user_id: str, password: str) -> User:
    """Store a new password. Every session of the account ends, because sessions carry a hash of the password."""
    return store_password_hash(user_id, make_password(password))


def store_password_hash(user_id: str, password_hash: str) -> User:
    return _update(user_id, [AccountItem.password.set(password_hash)])


def sign_out_everywhere(user_id: str) -> User:
    """End every session of the account with one write."""
    return _update(user_id, [AccountItem.session_epoch.add(1)])


def _update(user_id: str, actions: list[Action]) -> User:
    item = AccountItem(keys.user(user_id))
    try:
        item.update(actions=actions, condition=AccountItem.pk.exists())
    except ConditionFailed as error:
        raise NotFound("This account no longer exists.") from error
    return User.from_item(item)
