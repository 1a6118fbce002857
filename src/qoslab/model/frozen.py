"""Base class of all parts of an experiment."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NAME = r"[A-Za-z][A-Za-z0-9_.-]*"
"""Pattern of a name that the file's author gives to something."""
Name = Annotated[str, Field(pattern=rf"^{NAME}$", max_length=40)]


class Frozen(BaseModel):
    """Immutable; unknown keys are errors, and no value is converted silently."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        populate_by_name=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,  # a validator is built when it is used: once for the whole file, not once for each class
    )
