"""Lookup `loaded`: imports modules in the process that evaluates it, and returns nothing."""

from __future__ import annotations

import contextlib
import gc
from importlib import import_module
from typing import Any

from ansible.plugins.lookup import LookupBase

MADE_UNTIL_COLLECTED = 100_000
"""Objects created before a garbage collection; Python's default is 700, and a task creates many more."""


class LookupModule(LookupBase):
    """Lookup plugin; Ansible requires this name."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """Import the modules and return an empty list; a missing module is an error only for the task that needs it."""
        for name in terms:
            with contextlib.suppress(ImportError):
                import_module(str(name))
        # Workers are forks of this process: a garbage collection in each of them would copy all these objects.
        gc.freeze()
        gc.set_threshold(MADE_UNTIL_COLLECTED, 10, 10)
        return []
