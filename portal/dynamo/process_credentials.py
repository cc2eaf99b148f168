"""The credentials of the process itself, found in the way of the AWS SDK. Django is not imported here."""

from __future__ import annotations

import botocore.session
from botocore.exceptions import BotoCoreError


class CredentialsError(RuntimeError):
    """The environment names credentials that cannot be used: a profile that does not exist, say."""


def available() -> bool:
    """Tell whether there are any: in the environment, in a profile, or from the machine's role.

    Raises CredentialsError.
    """
    try:
        return botocore.session.Session().get_credentials() is not None
    except BotoCoreError as error:
        raise CredentialsError(f"The AWS credentials cannot be used: {error}") from None
