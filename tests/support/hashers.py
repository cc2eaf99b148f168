"""The real hasher with the least work it allows."""

from django.contrib.auth.hashers import Argon2PasswordHasher


class QuickArgon2(Argon2PasswordHasher):
    time_cost = 1
    memory_cost = 8
    parallelism = 1


class StrongerArgon2(QuickArgon2):
    """The same with other parameters, to which stored hashes are brought at the next sign-in."""

    time_cost = 2
