"""Models read what PynamoDB would read, whatever is stored, and an index follows from the model of its rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pynamodb.attributes import (
    Attribute,
    AttributeContainer,
    BinaryAttribute,
    BooleanAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    NumberSetAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
)

from portal.dynamo.compiled_reader import reader_of
from portal.dynamo.models import IndexModel, Item, Kinds, RawItems
from portal.schema.registry import Table
from tests.support.data_model import index_models, models
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import ActivityItem, DetailItem, SummaryItem

TEXT = st.text(max_size=5)
NUMBER = st.one_of(st.integers(-9, 10**15).map(str), st.just("1.5"), st.just("1E+2"))
ANY = st.one_of(st.builds(lambda t: {"S": t}, TEXT), st.builds(lambda n: {"N": n}, NUMBER), st.just({"NULL": True}))


def typed(attribute: Attribute[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A value of the attribute's own type."""
    match attribute:
        case UnicodeAttribute():
            return st.builds(lambda text: {"S": text}, TEXT)
        case NumberAttribute():
            return st.builds(lambda number: {"N": number}, NUMBER)
        case BooleanAttribute():
            return st.builds(lambda flag: {"BOOL": flag}, st.booleans())
        case BinaryAttribute():
            return st.builds(lambda data: {"B": data}, st.binary(max_size=4))
        case UnicodeSetAttribute():
            return st.builds(lambda texts: {"SS": texts}, st.lists(TEXT, min_size=1, max_size=3, unique=True))
        case NumberSetAttribute():
            return st.builds(lambda numbers: {"NS": numbers}, st.lists(NUMBER, min_size=1, max_size=3, unique=True))
        case ListAttribute():
            element = attribute.element_type
            inner = ANY if element is None else typed(element())
            return st.builds(lambda some: {"L": some}, st.lists(inner, max_size=3))
        case MapAttribute():
            inner_map = st.dictionaries(TEXT, ANY, max_size=2) if type(attribute) is MapAttribute else raw(attribute)
            return st.builds(lambda some: {"M": some}, inner_map)
        case Attribute(attr_type="M"):  # one of ours
            return st.builds(lambda some: {"M": some}, st.dictionaries(TEXT, ANY, max_size=2))
    return ANY  # of an attribute of a package's own


def raw(model: Any) -> st.SearchStrategy[dict[str, Any]]:
    """An item in which each attribute is as declared, missing, or now and then of another kind."""
    known = {a.attr_name: st.one_of(typed(a), typed(a), typed(a), ANY) for a in model.get_attributes().values()}
    return st.fixed_dictionaries({"unknown": ANY}, optional=known)


def plain(value: Any) -> Any:
    """The values with their types: PynamoDB does not compare instances, and a number may be of two types."""
    if isinstance(value, AttributeContainer):
        return type(value), {name: plain(one) for name, one in value.attribute_values.items()}
    return [plain(one) for one in value] if isinstance(value, list) else (type(value), value)


def outcome(read: Any, item: dict[str, Any]) -> Any:
    try:
        return plain(read(item))
    except Exception as error:  # whatever PynamoDB raises
        return type(error), str(error)


@pytest.mark.parametrize("model", [*models(), *index_models()], ids=lambda model: model.__name__)
def test_a_model_is_read_and_written_as_pynamodb_does(model: type[Item]) -> None:
    @settings(max_examples=6)
    @given(item=raw(model), checked=st.booleans())
    def same(item: dict[str, Any], checked: bool) -> None:
        # Not `from_raw_data`, which models whose items have attributes by any name extend.
        assert outcome(reader_of(model), item) == outcome(model._instantiate, item)
        if issubclass(model, IndexModel):
            return
        try:
            made = reader_of(model)(item)
        except Exception:  # as PynamoDB refuses it
            return
        slow = {"null_check": checked}
        assert outcome(lambda one: one._container_serialize(**slow), made) == outcome(
            lambda one: {**one.unknown, **AttributeContainer._container_serialize(one, **slow)}, made
        )

    same()


def test_defaults_are_not_shared_between_instances() -> None:
    item = {"pk": {"S": "x"}, "sk": {"S": "y"}}
    first, second = SummaryItem.from_raw_data(item), SummaryItem.from_raw_data(item)
    first.tags.append("urgent")
    first.days["20260101"] = 1
    assert (second.tags, second.days.attribute_values) == ([], {})


# --- indexes ---


@pytest.fixture
def parcels() -> Table:
    return Table("Test.Parcels", "tenant", "pk", "sk")


def test_an_index_is_declared_by_the_model_of_its_rows(parcels: Table) -> None:
    class ParcelRow(IndexModel):
        table = parcels
        pk = UnicodeAttribute()
        sk = UnicodeAttribute()
        weight = NumberAttribute(null=True)

    class ParcelByTown(ParcelRow):
        label = "gsi-town"
        town = UnicodeAttribute(hash_key=True)
        sent_at = UnicodeAttribute(range_key=True)

    assert (ParcelRow.table.indexes, ParcelByTown.table) == ((ParcelByTown.gsi,), parcels)
    assert ParcelByTown.gsi.definition() == {
        "IndexName": ParcelByTown.gsi.name,
        "KeySchema": [
            {"AttributeName": "town", "KeyType": "HASH"},
            {"AttributeName": "sent_at", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["weight"]},
    }
    with pytest.raises(ValueError, match="declared twice"):
        type("Again", (ParcelByTown,), {"label": "gsi-town"})


# --- items of several kinds ---

KINDS: Kinds[Any] = Kinds({ticket_keys.SUMMARY: SummaryItem, ticket_keys.DETAIL: DetailItem, "": ActivityItem})


@pytest.mark.parametrize(
    ("sort", "model"), [(ticket_keys.SUMMARY, SummaryItem), (ticket_keys.DETAIL, DetailItem), ("OTHER", ActivityItem)]
)
def test_a_mixed_collection_gives_each_item_its_model(sort: str, model: type[Item]) -> None:
    assert type(KINDS.from_raw_data({"pk": {"S": "x"}, "sk": {"S": sort}})) is model


def test_an_item_of_no_declared_kind_is_refused() -> None:
    only: Kinds[Any] = Kinds({ticket_keys.SUMMARY: SummaryItem})
    with pytest.raises(ValueError, match="no model"):
        only.from_raw_data({"pk": {"S": "x"}, "sk": {"S": "OTHER"}})


def test_raw_items_are_given_as_they_are(parcels: Table) -> None:
    assert RawItems(parcels).from_raw_data(item := {"pk": {"S": "x"}}) is item
