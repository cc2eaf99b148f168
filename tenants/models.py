"""Name the models of this app where Django looks for them."""

from tenants.identity.models import User

__all__ = ["User"]
