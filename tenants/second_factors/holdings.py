"""Say that second factors are a person's, in whichever tenants the person is."""

from __future__ import annotations

from portal.schema.holdings import declare_nothing
from tenants.second_factors.tables import FACTORS

declare_nothing(FACTORS, "it holds what people sign in with, who belong to no tenant by that")
