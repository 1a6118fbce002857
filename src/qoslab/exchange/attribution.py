"""Licence and authors of results, for formats that include them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from qoslab.errors import UserError

_AUTHOR = re.compile(r"(?P<name>[^<>]+?)\s*(?:<(?P<id>https?://[^<>\s]+|\d{4}-\d{4}-\d{4}-\d{3}[\dX])>)?")
_SPDX = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")


@dataclass(frozen=True)
class Author:
    """An author of the measurement."""

    name: str
    address: str
    """URL of a page, such as an ORCID; empty if not given."""


def parse_author(text: str) -> Author:
    """Parse `NAME`, or `NAME <ORCID or URL of a page>`. Raise `UserError` for other texts."""
    found = _AUTHOR.fullmatch(text.strip())
    if found is None:
        raise UserError(
            f'--author: found "{text}", expected "NAME" or "NAME <ORCID>"',
            hint='such as "Ada Lovelace <0000-0002-1825-0097>"',
        )
    given = found["id"] or ""
    return Author(found["name"], f"https://orcid.org/{given}" if given[:1].isdigit() else given)


def check_licence(licence: str, authors: Iterable[str]) -> None:
    """Raise `UserError` for a licence that does not have the form of an SPDX identifier, and for an invalid author."""
    if licence and not _SPDX.fullmatch(licence):
        raise UserError(
            f'--licence: found "{licence}", expected an SPDX identifier, such as CC-BY-4.0',
            hint="spdx.org/licenses lists them",
        )
    for author in authors:
        parse_author(author)
