"""Find the engine that a plain `manage.py` command works on: the one that `make run` has open in this checkout.

Called by manage.py before Django reads its settings, so Django is not imported here. The lock file of a state
directory is the engine file: its note is the engine's address, and the process that has the engine open holds it.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from urllib.parse import urlsplit

import environ as dotenv

from portal.engines.endpoint import LOOPBACK, answers, point_at
from portal.engines.engine_process import ENGINES, LOCK_NAME, EngineError, engine_class, find_queues
from portal.engines.processes import inspect_lock

ENDPOINT = "endpoint"  # the folder under var/ that notes an engine which `make run` was given
ENDPOINT_VARIABLE = "DYNAMODB_ENDPOINT_URL"
PORTAL = "portal"  # the file under var/ in which `make run` notes where its portal is: links in mails lead there
_NEED_NO_DATABASE = {
    "demo",
    "event_document",
    "iam_evaluate",
    "iam_policy",
    "infra_template",
    "noisy_neighbour",
    "torture_demo",
}
_NEED_SETTINGS_ALONE = {"certificate_keys", "verify_certificate"}  # the keys of whoever signs here
_MAY_NEED_ONE = {"runserver", "shell"}  # Django's own commands that use one where there is one
_HELP = {"-h", "--help"}
_LOOPBACK_NAMES = {LOOPBACK, "localhost", "::1"}


def prepare(
    argv: Sequence[str], checkout: Path, *, environ: MutableMapping[str, str], say: Callable[[str], object]
) -> None:
    """Point ``environ`` at the engine for the command in ``argv``, and ``say`` which one it is.

    Nothing changes for a command that needs no database, nor where an endpoint is set: an empty one means Amazon
    DynamoDB itself. Help has DEBUG, with which it knows every command. One that needs the settings alone gets those of
    `make run`, whatever state the engine is in. Raises EngineError where a command that needs a database would find
    none.
    """
    if not argv[1:] or "help" in argv[1:2] or _HELP & set(takewhile("--".__ne__, argv)):
        environ["DEBUG"] = "1"
        return
    if set(argv[1:2]) & _NEED_SETTINGS_ALONE:
        _join_settings(checkout, environ, say)
        return
    dotenv.Env.read_env(checkout / ".env")
    if not _needs_database(argv, checkout):
        _refuse_hidden(argv, checkout, environ)
        return
    if ENDPOINT_VARIABLE not in environ and (engine := _running_engine(checkout / "var", environ.get("ENGINE"))):
        kind, address = engine
        if kind == ENDPOINT:
            fill_in(address, environ)
        else:
            point_at(address, environ)
        find_queues(checkout / "var" / kind, environ)
        with suppress(FileNotFoundError):
            environ.setdefault("PORTAL_BASE_URL", (checkout / "var" / PORTAL).read_text())
        environ.setdefault("DEBUG", "1")
        say(f"Using the engine of `make run`, {kind} at {address}, with DEBUG={environ['DEBUG']}.")
    elif argv[1] not in _MAY_NEED_ONE and not environ.get(ENDPOINT_VARIABLE) and not _aws_credentials():
        raise EngineError(
            "There is no database to work on: start one with `make run` in another terminal, name one with "
            f"{ENDPOINT_VARIABLE}=<address>, or give AWS credentials to use Amazon DynamoDB."
        )
    _refuse_hidden(argv, checkout, environ)


def _refuse_hidden(argv: Sequence[str], checkout: Path, environ: MutableMapping[str, str]) -> None:
    """Raise EngineError for a proof without DEBUG: the settings leave it out, so Django would call it unknown."""
    is_debug = environ.get("DEBUG", "").lower() in dotenv.Env.BOOLEAN_TRUE_STRINGS
    if not is_debug and (checkout / "proofs" / "management" / "commands" / f"{argv[1]}.py").exists():
        raise EngineError(f"{argv[1]} is for development and needs DEBUG: DEBUG=1 python manage.py {argv[1]}")


def _join_settings(checkout: Path, environ: MutableMapping[str, str], say: Callable[[str], object]) -> None:
    """Set DEBUG as `make run` has it, where that runs in this checkout."""
    dotenv.Env.read_env(checkout / ".env")
    locks = (checkout / "var" / kind / LOCK_NAME for kind in (*ENGINES, ENDPOINT))
    if {"DEBUG", ENDPOINT_VARIABLE} & set(environ) or not any(inspect_lock(lock)[1] for lock in locks):
        return
    environ["DEBUG"] = "1"
    say("Using the settings of `make run`, with DEBUG=1.")


def fill_in(address: str, environ: MutableMapping[str, str]) -> None:
    """Name the engine at ``address``; one on this machine gets credentials where none are given."""
    if is_local(address):
        defaults: dict[str, str] = {}
        point_at(address, defaults)
        for name, value in defaults.items():
            environ.setdefault(name, value)
    environ[ENDPOINT_VARIABLE] = address


def is_local(address: str) -> bool:
    return urlsplit(address).hostname in _LOOPBACK_NAMES


def _needs_database(argv: Sequence[str], checkout: Path) -> bool:
    """Tell whether the command uses items, or may. An unknown one does not: Django says that it is unknown."""
    name = argv[1] if len(argv) > 1 else ""
    if name in _NEED_NO_DATABASE or not name.isidentifier() or "--version" in argv:
        return False
    return name in _MAY_NEED_ONE or any(checkout.glob(f"*/management/commands/{name}.py"))


def _running_engine(var: Path, wanted: str | None) -> tuple[str, str] | None:
    """Return kind and address of the engine that is open, None if none is; ``wanted`` chooses one of several.

    Raises EngineError for an unknown kind, several engines, one that still starts, and one that has gone: with
    credentials at hand the command would otherwise go to Amazon DynamoDB instead, without a word.
    """
    kinds = [engine_class(wanted).kind] if wanted else [*ENGINES, ENDPOINT]
    states = {kind: inspect_lock(var / kind / LOCK_NAME) for kind in kinds}
    running = [(kind, note) for kind, (note, held) in states.items() if held]
    if len(running) > 1:
        names = " and ".join(kind for kind, _ in running)
        raise EngineError(f"More than one engine runs here, {names}; choose one with ENGINE=<name>.")
    for kind, address in running:
        _refuse_dead(kind, address, var / kind / LOCK_NAME)
        return kind, address
    for kind, (note, _) in states.items():
        if note:
            raise EngineError(
                f"The engine at {note} ({kind}) ended without being stopped; start it again with `make run`, "
                f"or remove {var / kind / LOCK_NAME} if you do not want it."
            )
    return None


def _refuse_dead(kind: str, address: str, file: Path) -> None:
    if not address:
        raise EngineError(f"The engine of `make run` ({kind}) is still starting; try again in a moment.")
    try:
        port = urlsplit(address).port
    except ValueError:
        port = None
    if port is None and kind != ENDPOINT:
        raise EngineError(f"The engine file {file} names no address, but {address!r}; restart `make run`.")
    if port is not None and is_local(address) and not answers(port):
        raise EngineError(
            f"No DynamoDB engine answers at {address}, which {file} names; wait until `make run` has "
            "started it again, or restart `make run`."
        )


def _aws_credentials() -> bool:
    from portal.dynamo import process_credentials  # botocore takes 0.1 s, and is needed only where nothing runs

    try:
        return process_credentials.available()
    except process_credentials.CredentialsError as error:
        raise EngineError(str(error)) from None
