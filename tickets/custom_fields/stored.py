"""Say how the part of a desk's setup is stored that has its custom fields and its kinds of tickets."""

from __future__ import annotations

from tickets.custom_fields.definitions import PART, is_stored_text
from tickets.desk_setup.stored import declare_part

declare_part(PART, is_stored_text)
