"""The filters `ios_differences`, what is not in force, `ios_unrestored`, not undone, and `ios_plain`, no template."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def ios_differences(text: str, running: str, before: str = "", family: str = "router") -> list[str]:
    """Sentences, one for each thing that `text` asks for and the running configuration says otherwise.

    `before` is the running configuration from before `text` was pushed, empty where it is not known; `family` is
    `router` or `switch`.
    """
    from qoslab.ios.in_force import configuration_differences

    return configuration_differences(text, running, before=before or None, family=family)


def ios_unrestored(running: str, before: str, pushed: str = "", family: str = "router") -> list[str]:
    """Sentences, one for each thing that `pushed` has changed and that is not as it was `before`.

    Where `pushed` is empty it is not known what was changed: one for whatever differs.
    """
    from qoslab.ios.reading import likely_hardware
    from qoslab.ios.restore import unrestored

    return unrestored(before, running, [pushed] if pushed else [], likely_hardware(before, family))


def ios_plain(file: str) -> str:
    """The path of a configuration that is nothing but that; an error where Ansible could render some of its text."""
    from ansible.errors import AnsibleFilterError

    from qoslab.ios.templates import template_mark

    if mark := template_mark(Path(file).read_text(encoding="utf-8")):
        raise AnsibleFilterError(f"{file}:{mark}; write the line without it")
    return file


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """By name."""
        return {"ios_differences": ios_differences, "ios_unrestored": ios_unrestored, "ios_plain": ios_plain}
