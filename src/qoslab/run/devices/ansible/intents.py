"""Intents of an order on one router, in one task of Ansible: the common part of the action plugins of the roles.

Each task of Ansible starts two processes, so that a task for every module would take most of the time of an order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

Intent = Literal["prepare", "apply", "verify", "restore"]
INTENTS: tuple[Intent, ...] = ("prepare", "apply", "verify", "restore")

ARGUMENT = {"type": "list", "elements": "str", "choices": list(INTENTS), "required": True}
"""Argument `intents` of the actions, as a specification of Ansible."""


class IntentError(Exception):
    """Failure of an intent."""

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.result = {**details, "failed": True, "msg": message}


class DifferencesError(IntentError):
    """Failure of an intent because the router differs from the expected configuration."""

    def __init__(self, differences: Sequence[str]) -> None:
        super().__init__("\n".join(differences), differences=list(differences))


class Steps(Protocol):
    """Intents on one kind of router: an action plugin. Each returns a part of its result."""

    def prepare(self) -> dict[str, Any]:
        """Save the configuration from before the run."""

    def apply(self) -> dict[str, Any]:
        """Activate the intended configuration."""

    def verify(self) -> dict[str, Any]:
        """Compare the active configuration with the intended one."""

    def restore(self) -> dict[str, Any]:
        """Activate the configuration from before the run."""


def execute_in_order(intents: Sequence[Intent], steps: Steps, *failures: type[Exception]) -> dict[str, Any]:
    """Carry out the intents up to the first that fails, and return the result of the task.

    `intents` in it has the result of each intent that was carried out. Exceptions in `failures` are failures of an
    intent, like `IntentError`.
    """
    results: list[dict[str, Any]] = []
    failure: dict[str, Any] = {}
    for intent in intents:
        result: dict[str, Any] = {"intent": intent, "changed": False}
        results.append(result)
        try:
            result |= getattr(steps, intent)()
        except IntentError as error:
            result |= error.result
        except failures as error:
            result |= IntentError(str(error)).result
        if "failed" in result:
            failure = {"failed": True, "msg": result["msg"]}
            break
    return {"changed": any(each["changed"] for each in results), "intents": results, **failure}
