"""The lookup `loaded`: imports modules where it is asked, and finds nothing."""

from __future__ import annotations

import contextlib
import gc
from importlib import import_module
from typing import Any

from ansible.plugins.lookup import LookupBase

MADE_UNTIL_COLLECTED = 100_000
"""Objects; Python itself would look after 700, and a task makes many more."""


class LookupModule(LookupBase):
    """What Ansible asks for."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """No values; a module that is not there is left to whoever needs it."""
        for name in terms:
            with contextlib.suppress(ImportError):
                import_module(str(name))
        # Workers are forks of this process: each would look for garbage among all of this, and make it its own by that.
        gc.freeze()
        gc.set_threshold(MADE_UNTIL_COLLECTED, 10, 10)
        return []
