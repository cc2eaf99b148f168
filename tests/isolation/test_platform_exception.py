"""The stated exceptions to isolation, held by name: who may reach beyond one tenant, and who writes memberships."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from portal.dynamo.client import Item
from tenants.tenancy.stored import MembershipItem
from tests.architecture.test_layers import imports, modules, name
from tests.support import sources

# Reads and writes beyond a tenant: identity, accounts, memberships and a tenant's beginning; and up to when the stream
# has been counted, which is the same for all tenants and tells nothing about any.
PLATFORM = {
    # The operators' admin: its planned reads of platform tables, and its plain writes.
    "portal.nosql.admin.site",
    "portal.nosql.planner.patterns",
    # Their list of the dead letters of all tenants, and counting one in a silo, which no transaction with home does.
    "tickets.admin.facades",
    "tickets.counting.dead_letters",
    # The dead deliveries of all tenants, and whose deliveries operators hold.
    "delivery.queues.holds",
    # The sessions of one person, by their index.
    "portal.nosql.session_store",
    "tenants.sign_in.accounts",
    "tenants.sign_in.attempt_limits",
    "tenants.sign_in.impersonation_session",
    "tenants.sign_in.session_lifecycle",
    "tenants.membership.members",
    # Which kinds of mail a member does not want, in the item that holds their role, too.
    "tenants.membership.mail_choices",
    # What second factors a person has.
    "tenants.sign_in.factors",
    # Which addresses mail does not reach, whoever mails them; and the mail to somebody who forgot a password.
    "tenants.sign_in.suppressed_addresses",
    "delivery.mail.outbox_backend",
    "tenants.audit_trail.recording",
    "tenants.audit_trail.chain",
    # The last restore drill, of which members are told without acting as the platform.
    "tenants.audit_trail.drills",
    "tenants.tenancy.context",
    "tenants.tenancy.request",
    # A key is read before it is known who calls, and noted after that.
    "tenants.api_keys.key_authentication",
    "tenants.membership.accepting",
    "tenants.membership.invitations",
    "tenants.membership.member_changes",
    "tenants.tenancy.tenant_directory",
    "tenants.lifecycle.desk_settings",
    # An operator who acts as a member: the membership acted as, read with the session.
    "tenants.impersonation.impersonating",
    # A tenant that is brought in, with the memberships of its people.
    "tenants.lifecycle.arriving_rows",
    "tenants.lifecycle.import_notes",
    "tenants.lifecycle.tenant_import",
    "portal.streams.watermark",
    # What processes are asked for, which tells of tenants how busy they are and nothing else.
    "portal.faults.fault_board",
    "portal.load.excess_costs",
    "portal.load.rate_sharing",
    "portal.load.incidents",
    "portal.load.noise_report",
    "portal.load.route_costs",
    # The reshardings of all tenants, which operators ask for and see.
    "tickets.sharding.reshard_requests",
    # Where a tenant's content lies, and the moves of all tenants.
    "tenants.tenancy.placements",
    "tickets.moving.place_changes",
    # The files of runs that a desk has asked for, and the results of the operators' own proofs.
    "tickets.isolation_runs.platform_proofs",
    "tickets.isolation_runs.run_requests",
    # What is deleted with its tenant, and what certifies it.
    "tenants.lifecycle.certificates",
    "tickets.purging.erasing",
    "tickets.purging.purge_requests",
    # Which tenant has which queues, which operators see side by side.
    "delivery.queues.allocation",
    "delivery.queues.depths",
    "delivery.timers.due",
}
# Who holds the connection itself: the exception's own module, the making of tables, the proof that withholds writes;
# and the stream worker, whose connection is another one, with a policy and a guard of its own. What a process notes of
# its noise it writes as the role that it has.
CONNECTION = {
    "examples.todo.counting",  # as the worker, for the tenant whose changes it counts
    "portal.faults.fault_board",
    "portal.load.excess_costs",
    "portal.load.reporting",
    "portal.load.spending",  # the platform's own costs, as the role of the process
    "portal.dynamo.platform",
    "portal.dynamo.probe",
    "portal.dynamo.provisioning",
    "portal.dynamo.store",  # in bulk, as the role of the seed
    "portal.streams.worker",
    "tickets.counting.stream_handler",  # as the worker, for the tenant whose changes it counts
    "tickets.verification.rebuild",
    "proofs.cleanup",  # as the role that deletes whole tenants
    "proofs.scenarios.hostile_poller",
    "tickets.jobs.leased_job",  # as the role that carries the jobs of a kind out
    # Whole tenants, as the role that takes them up.
    "portal.dynamo.tenant_reader",
    "tickets.purging.erasing",  # as the lifecycle role, where that may and the platform may not
    "proofs.isolation.walk.api_tricks",
    "proofs.isolation.transport",
}
# Which modules outside of its own package know what is stored in an item of the platform's tables.
ELSEWHERE: dict[str, set[str]] = {
    "AccountItem": {
        "proofs.isolation.attempts.calls",
        "proofs.isolation.walk.visitors",
        "tenants.impersonation.impersonating",
        "tenants.operators.facades",
        "tenants.tenancy.request",
    },
    "ChainItem": {"tenants.lifecycle.arriving_rows"},
    "DirectoryItem": {"delivery.queues.allocation", "tenants.lifecycle.desk_settings", "tenants.operators.facades"},
    "DisabledAccount": {"tenants.operators.facades"},
    "ExcessItem": {"portal.load.excess_costs"},
    "FaultItem": {"tenants.admin.fault_pages"},
    "HoldItem": {"delivery.admin.held_tenant_admin", "tickets.admin.noise_pages"},
    "JobItem": {
        "tickets.bulk_jobs.stored",
        "tickets.admin.job_pages",
        "tickets.desk_export.stored",
        "tickets.isolation_runs.stored",
        "tickets.moving.stored",
        "tickets.purging.stored",
        "tickets.rules.stored",
        "tickets.sharding.stored",
    },
    "IsolationRunItem": {"tickets.reports.monthly"},
    "MembershipItem": {
        "tenants.impersonation.impersonating",
        "tenants.lifecycle.arriving_rows",
        "tenants.lifecycle.desk_settings",
        "tenants.membership.accepting",
        "tenants.membership.auditors",
        "tenants.membership.invitations",
        "tenants.membership.member_changes",
        "tenants.membership.members",
        "tenants.operators.facades",
    },
    "MoveItem": {"proofs.scenarios.move", "tickets.admin.place_pages", "tickets.management.commands.place_tenant"},
    "PlatformProofItem": {"tickets.reports.monthly"},
    "PurgeItem": {"tickets.management.commands.purge_tenant"},
    "ReshardItem": {
        "tickets.admin.noise_pages",
        "tickets.admin.shard_pages",
        "tickets.management.commands.reshard_tenant",
    },
    "SessionByUser": {"tenants.membership.stored", "tenants.operators.facades"},
    "SessionItem": {
        "proofs.isolation.attempts.calls",
        "tenants.impersonation.impersonating",
        "tenants.membership.stored",
        "tenants.operators.facades",
        "tenants.sign_in.impersonation_session",
        "tenants.sign_in.session_lifecycle",
        "tenants.tenancy.request",
    },
    "ThrottleItem": {"tenants.membership.invitations"},
    "UniqueItem": {
        "tenants.lifecycle.desk_settings",
        "tenants.lifecycle.tenant_lifecycle",
        "tenants.tenancy.tenant_directory",
    },
}
# Who makes, changes or ends a membership: a tenant's creation, the operator's command, the seed, and the proof, which
# makes one of its own and removes it. From the portal an accepted invitation is the only way in for somebody new;
# admins of a tenant change and remove what there is, and let former members in again.
CALLERS = {
    "tenants.admin.membership_admin",
    "tenants.membership.accepting",
    "tenants.membership.past_roster",
    "tenants.lifecycle.tenant_lifecycle",
    "tenants.management.commands.add_member",
    "proofs.isolation.walk.visitors",
    "tickets.seeding.cast",
}
WRITES = {
    "tenants.membership.member_changes": {
        *("add", "put_member", "set_role", "remove", "commit", "seed_member", "unseed_member"),
    },
}


@pytest.fixture(scope="module", autouse=True)
def only_while_they_are_read() -> Iterator[None]:
    with sources.reading():
        yield


def product() -> list[Path]:
    """Every module but those of the benchmarks, which measure and serve nobody."""
    return [path for path in modules() if not name(path).startswith("benchmarks")]


def trees(*words: str) -> list[tuple[str, ast.Module]]:
    """The modules of the product in which one of these words stands, each parsed once."""
    return [(name(path), sources.tree(path)) for path in product() if sources.mentions(path, *words)]


def imported(module: str, tree: ast.AST) -> set[str]:
    return {use.what for use in imports(ast.walk(tree), module)}


def mentioned(words: list[str]) -> dict[str, set[str]]:
    """The modules in which a name stands, is imported, is taken from a module, or is a text, by name."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module, tree in trees(*words):
        for node in ast.walk(tree):
            names = [getattr(node, "id", None), getattr(node, "attr", None)]
            names += [alias.name for alias in getattr(node, "names", []) if isinstance(alias, ast.alias)]
            names += [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
            for one in filter(None, names):
                found[one].add(module)
    return found


def test_the_platform_module_is_imported_by_these_only() -> None:
    assert {m for m, tree in trees("platform") if "portal.dynamo.platform" in imported(m, tree)} == PLATFORM


OPENING = ("connection", "make_client", "Store", "as_role")


def opens_the_platform(tree: ast.AST) -> bool:
    """A call of `connection`, or a store, for anything but "tenant"; what cannot be read counts."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        named = getattr(node.func, "attr", getattr(node.func, "id", ""))
        scopes = [getattr(a, "value", None) for a in (*node.args, *(k.value for k in node.keywords))]
        if named in OPENING and scopes and scopes[0] != "tenant":
            return True
    return False


def test_the_platform_connection_is_opened_by_these_only() -> None:
    found = {module for module, tree in trees(*OPENING) if opens_the_platform(tree)}
    assert found - {"portal.dynamo.client"} == CONNECTION


def platform_items() -> Iterator[type[Item]]:
    for module in map(name, modules()):
        # No process loads all of them by itself, nor any of the product those of another application.
        if module.endswith(("items", "stored")) and not module.startswith("examples."):
            import_module(module)

    def below(model: type[Item]) -> Iterator[type[Item]]:
        for child in model.__subclasses__():
            yield child
            yield from below(child)

    for model in below(Item):
        if hasattr(model, "table") and model.table.scope == "platform" and not model.__module__.startswith("tests."):
            yield model


def test_an_item_of_the_platform_is_known_to_its_own_package_and_to_these_only() -> None:
    found, items = {}, [*platform_items()]
    known = mentioned([item.__name__ for item in items])
    for item in items:
        package = item.__module__.rpartition(".")[0] + "."
        if elsewhere := {module for module in known[item.__name__] if not module.startswith(package)}:
            found[item.__name__] = elsewhere
    assert found == ELSEWHERE


def test_the_context_reads_memberships_and_never_writes_one() -> None:
    tree = next(tree for module, tree in trees(MembershipItem.__name__) if module == "tenants.tenancy.context")
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Call | ast.Attribute)]
    held = [node.func if isinstance(node, ast.Call) else node.value for node in used]
    assert not [node for node in held if isinstance(node, ast.Name) and node.id == MembershipItem.__name__]


def writes_members(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        for module, writes in WRITES.items():
            taken: set[str] = set()
            if isinstance(node, ast.ImportFrom) and node.module == module:
                taken = {alias.name for alias in node.names}
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith(module.rpartition(".")[2]):
                taken = {node.attr}
            if taken & {*writes, "*"}:
                return True
    return False


def test_memberships_are_written_by_these_only() -> None:
    knowing = ((m, tree) for m, tree in trees("member_changes") if {*WRITES} & imported(m, tree))
    assert {module for module, tree in knowing if writes_members(tree)} == CALLERS


@pytest.mark.parametrize(
    "source",
    [
        "client.connection('platform')",
        "connection(scope)",
        "client.make_client('platform')",
        "client.connection(scope='platform')",
        "Store('platform')",
        "store.Store(role, tenant_id)",
        "tenant.repository.as_role('seed')",
    ],
)
def test_the_rule_sees_an_opened_connection(source: str) -> None:
    assert opens_the_platform(ast.parse(source))


def test_the_rule_leaves_the_tenants_connection_alone() -> None:
    source = "client.connection('tenant').dispatch('Query', {})\nplatform.connection()\nStore('tenant', tenant_id)"
    assert not opens_the_platform(ast.parse(source))


def test_these_tests_see_the_modules() -> None:
    assert len(product()) > 60
    assert Path("portal/dynamo/platform.py") in {p.relative_to(p.parents[2]) for p in modules() if len(p.parts) > 3}
