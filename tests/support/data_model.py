"""The data model as documents: made from the declarations, from items of a desk that was used, and from what pages ask.

`docs/data-model.md` is for people, `docs/data-model.json` for NoSQL Workbench ("Import data model").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from portal.dynamo.client import Item, SharedConnection
from portal.dynamo.models import IndexModel
from portal.schema import registry
from portal.schema.registry import Index, Table

LONGEST: Final = 60  # characters of a value that is shown
EXAMPLE: Final = "- example: "
BAR: Final = r"\|"  # in a cell of a table
Rows = dict[str, list[dict[str, Any]]]  # what is stored, by table
_VARIES: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?"), "2026-01-05T09:00:00.000000Z"),
    (re.compile(r"\d{4}-\d\d-\d\d(?!T)"), "2026-01-05"),
    (re.compile(r"\b1[789]\d{8}\b"), "1767603600"),
    (re.compile(r"whsec_\S+"), "whsec_made-up"),
)
_ID: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{8,64}(?![0-9a-f])|[0-9a-zA-Z+_-]{24,}=*")


def below(cls: Any) -> Iterator[Any]:
    """All subclasses of a class."""
    for sub in cls.__subclasses__():
        yield sub
        yield from below(sub)


def index_models() -> list[type[Item]]:
    """Every model of an index's rows."""
    return sorted((model for model in below(IndexModel) if model.gsi is not None), key=lambda model: model.__name__)


def models() -> list[type[Item]]:
    """Every PynamoDB model of a table's items, by table and name; those of an index's rows are no entities."""
    own = {m for m in below(Item) if not m.__module__.startswith("tests.") and not issubclass(m, IndexModel)}
    return sorted(own, key=lambda model: (model.table.name, model.__name__))


def rows_of(model: type[Item], rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stored items that this model describes, and no smaller model of the table."""
    attributes = model.get_attributes()
    needed = {a.attr_name for a in attributes.values() if not a.null and a.default is None}
    fitting = [raw for raw in rows if needed <= raw.keys() <= {a.attr_name for a in attributes.values()}]
    others = [m for m in models() if m.table is model.table and m is not model]
    return [raw for raw in fitting if _claims(model, raw) and not any(_beats(o, model, raw) for o in others)]


def _claims(model: type[Item], raw: dict[str, Any]) -> bool:
    types = {a.attr_name: a.attr_type for a in model.get_attributes().values()}
    return all(types[name] in value or "NULL" in value for name, value in raw.items())


def _beats(other: type[Item], model: type[Item], raw: dict[str, Any]) -> bool:
    """Whether another model of the table says more of this row."""
    theirs, ours = ({a.attr_name for a in m.get_attributes().values()} for m in (other, model))
    needed = {a.attr_name for a in other.get_attributes().values() if not a.null and a.default is None}
    return needed <= raw.keys() <= theirs and len(theirs) < len(ours) and _claims(other, raw)


def made_up(raw: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """The item with made-up ids, moments and secrets: the same one for the same, as `ids` collects them."""

    def id_for(match: re.Match[str]) -> str:
        found = match[0]
        return found if found.isdigit() else ids.setdefault(found, f"{len(ids) + 1:x}".rjust(len(found), "a"))

    def told(value: Any) -> Any:
        if isinstance(value, str):
            for varies, instead in _VARIES:
                value = varies.sub(instead, value)
            return _ID.sub(id_for, value)
        if isinstance(value, dict):
            return {name: told(one) for name, one in sorted(value.items())}
        return [told(one) for one in value] if isinstance(value, list) else value

    return {name: told(value) for name, value in raw.items()}


def shape(key: str) -> str:
    """The form of a key: words in capitals stay, all else is named for what it is."""
    return "".join(part if part in "#|/" else _kind(part) for part in re.split(r"([#|/])", key))


def _kind(part: str) -> str:
    kinds = {
        "[A-Z][A-Z_-]*": part, "[0-9a-f]{32}": "<id>", "[0-9a-f]{12}": "<text>",  # an entry's, perhaps of digits only
        r"\d{4}-\d\d-\d\dT.*": "<time>", r"\d{4}-\d\d-\d\d": "<date>",
        r"\d+": "<n>", "": "",
    }  # fmt: skip
    return next((said for pattern, said in kinds.items() if re.fullmatch(pattern, part)), "<text>")


def key_shape(model: type[Item], raw: dict[str, Any]) -> str:
    """The form of an item's key."""
    return ", ".join(f"{name} {shape(raw[name]['S'])}" for name in model.table.key_names)


def key_shapes(model: type[Item], rows: Iterable[dict[str, Any]]) -> list[str]:
    """The forms of the keys of all items that this model describes."""
    return sorted({key_shape(model, raw) for raw in rows_of(model, rows)})


# --- what pages ask for ---


def recorded(monkeypatch: Any) -> list[str]:
    """Have what is asked of the engine from here on in this list, as access patterns."""
    asked: list[str] = []
    real = SharedConnection.ask

    def ask(connection: SharedConnection, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        asked.append(_asked(operation, params))
        return real(connection, operation, params)

    monkeypatch.setattr(SharedConnection, "ask", ask)
    return asked


def _asked(operation: str, params: dict[str, Any]) -> str:
    if operation == "Query":
        condition: str = params["KeyConditionExpression"]
        names = {name: str(text) for name, text in params.get("ExpressionAttributeNames", {}).items()}
        values = {name: _value(typed) for name, typed in params["ExpressionAttributeValues"].items()}
        for name, text in sorted((names | values).items(), key=lambda pair: -len(pair[0])):
            condition = condition.replace(name, text)
        index = f"/{params['IndexName']}" if "IndexName" in params else ""
        return f"Query {_table(params['TableName'])}{index} where {condition}"
    if operation == "BatchGetItem":
        tables = (f"{len(some['Keys'])} of {_table(name)}" for name, some in sorted(params["RequestItems"].items()))
        return f"BatchGetItem {', '.join(tables)}"
    if operation == "TransactWriteItems":
        pairs = [(kind, _table(one["TableName"])) for member in params["TransactItems"] for kind, one in member.items()]
        return (
            f"TransactWriteItems {', '.join(f'{pairs.count(pair)} {pair[0]} {pair[1]}' for pair in sorted({*pairs}))}"
        )
    key = ", ".join(f"{name} = {_value(typed)}" for name, typed in params.get("Key", {}).items())
    return f"{operation} {_table(params.get('TableName', ''))}{' where ' if key else ''}{key}"


def _value(typed: dict[str, Any]) -> str:
    return f"`{shape(str(next(iter(typed.values()))))}`"


def _table(full_name: str) -> str:
    return next((t.name for t in registry.tables() if t.full_name == full_name), full_name)


# --- documents ---


def document(rows: Rows, patterns: Iterable[tuple[str, str, str]]) -> str:
    """The page: an entity chart, the access patterns, and each table with its entities."""
    examples = examples_of(rows)
    lines = [
        *_HEAD, *_CHART, "", "## Access patterns", "",
        "The most used ones, each as it was asked for, beside the BatchGetItem by which a signed-in page knows who is",
        "calling: 1 round trip and 3.5 RCU more. [access-patterns.md](access-patterns.md) has those of all routes.", "",
        "| access pattern | asked for | cost |",
        "|---|---|---|",
        *(f"| {name} | {asked.replace('|', BAR)} | {cost} |" for name, asked, cost in patterns),
        "", "## Tables",
    ]  # fmt: skip
    for table in registry.tables():
        lines += ["", *_table_lines(table, rows[table.name], examples)]
    return "\n".join(lines) + "\n"


def examples_of(rows: Rows) -> dict[str, dict[str, Any]]:
    """An item of each model that has one: that with the most attributes."""
    ids: dict[str, str] = {}
    fitting = {model.__name__: rows_of(model, rows[model.table.name]) for model in models()}
    return {name: made_up(max(some, key=len), ids) for name, some in fitting.items() if some}


_HEAD: Final = """# The data model

Generated from the declarations in each `stored.py`, the items of a used desk, and the requests of pages
(`test_data_model.py`). [`data-model.json`](data-model.json) has the tables, their indexes, a facet and an item of each
entity for NoSQL Workbench: *Import data model*. In keys,
`<id>` is a tenant's or another id; capitals are literal. The end of an index's name
is a digest of its keys and attributes ([operations](operations.md#upgrading)): `gsi-actor-05893f` is the sources'
`gsi-actor`.

## Entities

""".splitlines()

_CHART: Final = """```
person ──< membership >── tenant ──< ticket ──< activity (comment, note, event)
   │                        │           └── detail (the long text)
   ├──< session             ├──< member, invitation, API key, endpoint ──< delivery
   └──< second factor       ├──< audit row
                            ├──< aggregate (counts of all tickets)
                            └──< segment of the search index ──< block
```""".splitlines()


def _table_lines(table: Table, stored: list[dict[str, Any]], examples: dict[str, dict[str, Any]]) -> list[str]:
    keys = f"partition key `{table.hash}`" + (f", sort key `{table.range}`" if table.range else "")
    facts = [keys, f"scope {table.scope}"]
    facts += [f"TTL `{table.ttl}`"] if table.ttl else []
    facts += ["stream"] if table.stream else []
    lines = [f"### {table.name}", "", f"P{'; '.join(facts)[1:]}.", ""]
    if table.shared:
        lines += [f"Its partition keys have no tenant: {table.shared}.", ""]
    lines += [_index_line(index) for index in table.indexes] + ([""] if table.indexes else [])
    for model in (one for one in models() if one.table is table):
        lines += [f"**{model.__name__}** — {first_sentence(model)}", ""]
        lines += [f"- keys: `{keys}`" for keys in key_shapes(model, stored)]
        lines += [f"- attributes: {_attributes(model)}"]
        lines += [f"{EXAMPLE}`{_short(examples[model.__name__])}`"] if model.__name__ in examples else []
        lines += [""]
    return lines[:-1]


def _index_line(index: Index) -> str:
    include = ", ".join(f"`{name}`" for name in sorted(index.include)) or "keys only"
    return f"- index `{index.name}`: `{index.hash}`, `{index.range}`; projects {include}"


def first_sentence(model: type[Item]) -> str:
    return re.split(r"(?<=\.)\s", " ".join((model.__doc__ or "").split()))[0]


def _attributes(model: type[Item]) -> str:
    return ", ".join(f"{a.attr_name} {a.attr_type}" for a in model.get_attributes().values())


def _short(example: dict[str, Any]) -> str:
    def plain(typed: dict[str, Any]) -> str:
        ((kind, value),) = typed.items()
        text = (
            "…" if kind in ("B", "BS") else str(value) if kind in ("S", "N") else json.dumps(value, ensure_ascii=False)
        )
        return text if len(text) <= LONGEST else text[:LONGEST] + "…"

    return ", ".join(f"{name}={plain(value)}" for name, value in example.items()).replace("`", "'").replace("|", "\\|")


def workbench(rows: Rows) -> str:
    """The model as NoSQL Workbench reads it: tables with their indexes, facets and sample items."""
    examples = examples_of(rows)
    return (
        json.dumps(
            {
                "ModelName": "Pooldesk",
                "ModelMetadata": {
                    "Author": "Pooldesk",
                    "DateCreated": "Jan 05, 2026, 09:00 AM",
                    "DateLastModified": "Jan 05, 2026, 09:00 AM",
                    "Description": "A support desk of many tenants in pooled tables. A facet is an entity.",
                    "AWSService": "Amazon DynamoDB",
                    "Version": "3.0",
                },
                "DataModel": [_workbench_table(table, examples) for table in registry.tables()],
            },
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )


def _workbench_table(table: Table, examples: dict[str, dict[str, Any]]) -> dict[str, Any]:
    own = [model for model in models() if model.table is table]
    types = {a.attr_name: a.attr_type for model in own for a in model.get_attributes().values()}
    of_indexes = {name: "S" for index in table.indexes for name in (index.hash, index.range, *index.include)}
    rest = {name: kind for name, kind in (of_indexes | types).items() if name not in table.key_names}
    # An attribute has one type for Workbench; the search index has one of two types by the kind of item.
    data = [
        raw
        for model in own
        if (raw := examples.get(model.__name__))
        if all({"NULL", rest[name]} & {*raw[name]} for name in rest.keys() & raw.keys())
    ]
    return {
        "TableName": table.name,
        "KeyAttributes": _key(table.hash, table.range),
        "NonKeyAttributes": [{"AttributeName": name, "AttributeType": kind} for name, kind in sorted(rest.items())],
        "TableFacets": [
            {
                "FacetName": model.__name__,
                "KeyAttributeAlias": {"PartitionKeyAlias": table.hash}
                | ({"SortKeyAlias": table.range} if table.range else {}),
                "TableData": [],
                "NonKeyAttributes": sorted(
                    a.attr_name for a in model.get_attributes().values() if a.attr_name not in table.key_names
                ),
                "DataAccess": {"MySql": {}},
            }
            for model in own
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": index.name,
                "KeyAttributes": _key(index.hash, index.range),
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": sorted(index.include)}
                if index.include
                else {"ProjectionType": "KEYS_ONLY"},
            }
            for index in table.indexes
        ],
        "TableData": [{name: value for name, value in raw.items() if not {"B", "BS"} & value.keys()} for raw in data],
        "DataAccess": {"MySql": {}},
        "BillingMode": "PAY_PER_REQUEST",
    }


def _key(hash_name: str, range_name: str | None) -> dict[str, Any]:
    key = {"PartitionKey": {"AttributeName": hash_name, "AttributeType": "S"}}
    return key | ({"SortKey": {"AttributeName": range_name, "AttributeType": "S"}} if range_name else {})
