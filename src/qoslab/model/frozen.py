"""Base class of all parts of an experiment."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NAME = r"[A-Za-z][A-Za-z0-9_.-]*"
"""Pattern of a name that the author of a file chooses."""
Name = Annotated[str, Field(pattern=rf"^{NAME}$", max_length=40)]


class Frozen(BaseModel):
    """Immutable model; unknown keys are errors, and values are not converted silently."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        populate_by_name=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,  # validators are built on first use: once for the whole file, not once for each class
    )
