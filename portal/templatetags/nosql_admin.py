"""What the admin's pages say about themselves."""

from __future__ import annotations

from django import template

from portal.dynamo import meter

register = template.Library()


@register.simple_tag
def cost() -> str:
    """The bill of the page so far: at its foot, all of it. Writes happened before the redirect that led here."""
    bill = meter.current()
    if bill is None:
        return ""
    calls = len(bill.calls)
    return (
        f"This page took {bill.trips} round trip{'s' * (bill.trips != 1)}, {calls} call{'s' * (calls != 1)}, "
        f"{bill.items} item{'s' * (bill.items != 1)}, {bill.read_units:g} read and {bill.write_units:g} write units."
    )
