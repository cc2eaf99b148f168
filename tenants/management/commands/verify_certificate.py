"""`manage.py verify_certificate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.errors import Invalid
from portal.management.command import PortalCommand
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tenants.lifecycle import certificates


class Command(PortalCommand):
    costs = cost()
    help = (
        "Verify certificates of deletion and signed pages: that every byte is as it was signed, and of several "
        "certificates that each names the one before it. Needs no database and no network. Status 0: all are good; 1: "
        "one is not, with what is wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE", type=Path)
        parser.add_argument(
            "--keys", type=Path, metavar="FILE", help="what certificate_keys printed (the keys of the settings)"
        )

    def work(self, options: dict[str, Any]) -> None:
        try:
            keys = certificates.read_keys(options["keys"].read_text()) if options["keys"] else certificates.known_keys()
            verified, signed_pages = [], []
            for path in options["files"]:
                content = path.read_bytes()
                if certificates.is_page(content):
                    signed_pages.append((path, _verified(path, content, keys, certificates.verify_page)))
                else:
                    verified.append((content, _verified(path, content, keys, certificates.verify)))
        except OSError as error:
            raise CommandError(f"{error.filename} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise CommandError(f"{options['keys']} is no file of keys.") from error
        certificates.refuse_gap(verified)
        if not options["keys"]:
            self.stdout.write(
                "Verified with the keys of this installation's settings. --keys with keys that the signer published "
                "proves more."
            )
            if certificates.is_development_key():
                self.stdout.write("The key of these settings is that of development: everybody can sign with it.")
        for path, said in signed_pages:
            self.stdout.write(f"{path.name} is as it was signed by the key {said['key']}. {_in_words(said)}")
        for _, said in verified:
            tenant, items = said["tenant"], amount(sum(one["deleted"] for one in said["holdings"]), "item")
            self.stdout.write(
                f"Certificate {said['number']} is good: {tenant['slug']} ({tenant['id']}), {items} deleted, "
                f"issued {said['issued_at']}, signed by the key {said['key']}."
            )


def _in_words(said: dict[str, Any]) -> str:
    facts = {name: said[name] for name in said.keys() - {"key", "sha256", "signature", "version", "tenant"}}
    tenant = said["tenant"]
    told = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in sorted(facts.items()))
    return f"It says of {tenant['slug']} ({tenant['id']}): {told}."


Verify = Callable[[bytes, Any], dict[str, Any]]


def _verified(path: Path, content: bytes, keys: Any, verify: Verify) -> dict[str, Any]:
    try:
        said = verify(content, keys)
        if verify is certificates.verify and "holdings" not in said:
            raise Invalid("This is no certificate of deletion.")
        return said
    except Invalid as error:
        raise CommandError(f"{path.name}: {error.message}") from error
