"""The filter `ios_differences`: what of a configuration is not in force."""

from __future__ import annotations

from collections.abc import Callable


def ios_differences(text: str, running: str, before: str = "", family: str = "router") -> list[str]:
    """Sentences, one for each thing that `text` asks for and the running configuration says otherwise.

    `before` is the running configuration from before `text` was pushed, empty where it is not known; `family` is
    `router` or `switch`.
    """
    from qoslab.ios.in_force import configuration_differences

    return configuration_differences(text, running, before=before or None, family=family)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """By name."""
        return {"ios_differences": ios_differences}
