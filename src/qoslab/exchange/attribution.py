"""Licence and authors of results, for formats with a place for them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from qoslab.errors import UserError

_AUTHOR = re.compile(r"(?P<name>[^<>]+?)\s*(?:<(?P<id>https?://[^<>\s]+|\d{4}-\d{4}-\d{4}-\d{3}[\dX])>)?")
_SPDX = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")


@dataclass(frozen=True)
class Author:
    """Author of the measurement."""

    name: str
    address: str
    """Address of a page, such as an ORCID; empty if not given."""


def author_of(text: str) -> Author:
    """Read `NAME`, or `NAME <ORCID or address of a page>`. `UserError` for other texts."""
    found = _AUTHOR.fullmatch(text.strip())
    if found is None:
        raise UserError(
            f'--author: found "{text}", expected "NAME" or "NAME <ORCID>"',
            hint='as "Ada Lovelace <0000-0002-1825-0097>"',
        )
    given = found["id"] or ""
    return Author(found["name"], f"https://orcid.org/{given}" if given[:1].isdigit() else given)


def check_signed(licence: str, authors: Iterable[str]) -> None:
    """Raise `UserError` for a licence that is none of SPDX by its form, and for an author that cannot be read."""
    if licence and not _SPDX.fullmatch(licence):
        raise UserError(
            f'--licence: found "{licence}", expected an SPDX identifier, such as CC-BY-4.0',
            hint="spdx.org/licenses lists them",
        )
    for author in authors:
        author_of(author)
