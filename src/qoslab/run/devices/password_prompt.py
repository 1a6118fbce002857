"""Prompt for router passwords missing from an inventory; they are kept in memory only."""

from __future__ import annotations

import getpass
import warnings
from collections.abc import Collection
from pathlib import Path

from qoslab.errors import UserError
from qoslab.results.redaction import KNOWN
from qoslab.run.devices.ansible_inventory import InventoryPart, IosAccess, give_secrets, read_inventory


def prompt_for_passwords(source: Path, routers: Collection[str]) -> None:
    """Prompt for passwords of these routers missing from the inventory `source`; its later readers find them.

    An empty answer means no password: a key is used for the login, which starts with all rights. Raise `UserError`
    without a terminal.
    """
    given: dict[str, dict[InventoryPart, str]] = {}
    for name, access in read_inventory(source).items():
        if name not in routers or not isinstance(access, IosAccess):
            continue
        who = f"{access.user} on {name}" if access.user else name
        if access.password is None:
            given.setdefault(name, {})["password"] = _prompt(f"Password for {who} (empty: use a key): ")
        if access.enable is None:
            given.setdefault(name, {})["enable"] = _prompt(f"Enable secret for {name} (empty: none): ")
    give_secrets(source, given)


def _prompt(prompt: str) -> str:
    with warnings.catch_warnings():
        # Without a terminal, input would come from elsewhere and be shown.
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            answer = getpass.getpass(prompt)
        except getpass.GetPassWarning:
            raise UserError(
                "found no terminal to ask for passwords, expected one for --ask",
                hint="Let the inventory read them from a vault, the environment or a keyring (docs/real-routers.md).",
            ) from None
        except EOFError:
            raise KeyboardInterrupt from None
    KNOWN.know(answer)
    return answer
