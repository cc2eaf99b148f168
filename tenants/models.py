"""Name the models of this app where Django looks for them."""

from tenants.sign_in.accounts import User

__all__ = ["User"]
