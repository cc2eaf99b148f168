"""Run the to-do lists from the command line: `python -m examples.todo --help`.

A tenant's id is made of its name here, because a command line has no sign-in. An application takes it from the session
of a person whose membership it has read, and from nothing that the person says.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import Final

from django.conf import settings

from examples.todo import stored
from examples.todo.counting import fold
from examples.todo.todo_lists import Lists
from portal.dynamo import client, library_errors, meter, provisioning
from portal.dynamo.store import Store
from portal.engines.engine_process import start_engine
from portal.isolation import guard, policies
from portal.schema import keys
from portal.streams.poller import Poller

WHERE: Final = "The commands use the engine at DYNAMODB_ENDPOINT_URL, and without one Amazon DynamoDB."


def tenant(name: str) -> str:
    """Return the id of the tenant of this name."""
    return keys.anonymous(name)


def lists(name: str) -> Lists:
    """Return the lists of the tenant of this name."""
    return Lists(Store("tenant", tenant(name)))


def follow(*, once: bool) -> None:
    """Keep the counts; `once`, until all that has happened so far is counted."""
    poller, since = Poller(stored.TODOS, fold, idle_seconds=0.1), time.monotonic()
    poller.run(lambda: not (once and poller.caught_up(since)))


def demo() -> None:
    """Show the lists of two tenants, a refused request and the counts."""
    provisioning.create_all(wait=True)
    acme, globex = lists("acme"), lists("globex")
    for text in ("Order paper", "Call the printer"):
        acme.add("office", text)
    with meter.measure() as bill:
        acme.finish("office", 1)
    print(f"To finish a to-do: {bill.trips} round trip, {bill.read_units:g} RCU, {bill.write_units:g} WCU")
    globex.add("office", "Water the plants")
    show(acme.read("office"), "Acme, office")
    show(globex.open(), "Globex, open in all lists")
    key = {"pk": {"S": stored.list_key(tenant("acme"), "office")}, "sk": {"S": stored.number_key(1)}}
    try:
        with guard.acting_for(tenant("globex")):
            client.connection("tenant").dispatch("GetItem", {"TableName": stored.TODOS.full_name, "Key": key})
    except guard.IsolationError as refused:
        print(f"Globex asks for a key of Acme: refused, {refused.why}")
    follow(once=True)
    print(f"Acme: {counted(acme)}", f"Globex: {counted(globex)}", sep="\n")


def show(todos: Sequence[tuple[str, int, str, bool]], title: str) -> None:
    """Print to-dos under a title."""
    print(title, *(f"  [{'x' if is_done else ' '}] {name} {n}: {text}" for name, n, text, is_done in todos), sep="\n")


def counted(of: Lists) -> str:
    """Say how many to-dos are open and done."""
    return "{} open, {} done".format(*of.counts())


def run(options: argparse.Namespace) -> None:
    """Run one command."""
    if options.command == "policy":
        print(json.dumps(policies.document("tenant"), indent=2))
    elif options.command == "create-tables":
        print(*provisioning.create_all(wait=True), sep="\n")
    elif options.command == "follow":
        follow(once=options.once)
    elif options.command == "demo":
        demo()
    elif options.command == "add":
        print("Number", lists(options.tenant).add(options.list, options.text).number)
    elif options.command == "show":
        one = lists(options.tenant)
        show(one.read(options.list) if options.list else one.open(), options.list or "open in all lists")
    elif options.command == "counts":
        print(counted(lists(options.tenant)))
    else:
        getattr(lists(options.tenant), options.command)(options.list, options.number)


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    made = argparse.ArgumentParser(
        "python -m examples.todo", description="Shared to-do lists for many tenants.", epilog=WHERE
    )
    commands = made.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="all of it at once; starts an engine where DYNAMODB_ENDPOINT_URL names none")
    commands.add_parser("engine", help="a database on this machine, until Ctrl-C; other commands use it")
    commands.add_parser("create-tables", help="create the tables that are missing")
    commands.add_parser("policy", help="print the IAM policy of the tenant role")
    commands.add_parser("follow", help="keep the counts, from the stream").add_argument("--once", action="store_true")
    for name, words in {"add": ("list", "text"), "finish": ("list", "number"), "remove": ("list", "number")}.items():
        command = commands.add_parser(name, help=f"{name} a to-do")
        command.add_argument("tenant")
        for word in words:
            command.add_argument(word, type=int if word == "number" else str)
    command = commands.add_parser("show", help="show a list, or what is open in all of them")
    command.add_argument("tenant")
    command.add_argument("list", nargs="?")
    commands.add_parser("counts", help="how many are open and done").add_argument("tenant")
    return made


def main() -> int:
    options = parser().parse_args()
    try:
        if options.command == "engine" or (options.command == "demo" and not settings.DYNAMODB_ENDPOINT_URL):
            with start_engine() as engine:
                settings.DYNAMODB_ENDPOINT_URL = engine.endpoint_url
                if options.command == "demo":
                    demo()
                else:
                    print(f"export DYNAMODB_ENDPOINT_URL={engine.endpoint_url}", flush=True)
                    while engine.poll() is None:
                        time.sleep(1)
        else:
            run(options)
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    library_errors.run(main)
