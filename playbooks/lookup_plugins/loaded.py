"""The lookup `loaded`: imports modules where it is asked, and finds nothing."""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import Any

from ansible.plugins.lookup import LookupBase


class LookupModule(LookupBase):
    """What Ansible asks for."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """No values; a module that is not there is left to whoever needs it."""
        for name in terms:
            with contextlib.suppress(ImportError):
                import_module(str(name))
        return []
