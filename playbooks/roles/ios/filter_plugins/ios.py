"""Filters `ios_differences` (not in force), `ios_unrestored` (not undone) and `ios_plain` (not a template)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def ios_differences(text: str, running: str, before: str = "", family: str = "router") -> list[str]:
    """Return sentences, one for each difference of the running configuration from `text`.

    `before` is the running configuration from before `text` was pushed, empty if unknown; `family` is
    `router` or `switch`.
    """
    from qoslab.ios.device_config.config_equivalence import configuration_differences

    return configuration_differences(text, running, before=before or None, family=family)


def ios_unrestored(running: str, before: str, pushed: str = "", family: str = "router") -> list[str]:
    """Return sentences, one for each change by `pushed` that is not undone.

    If `pushed` is empty, the changes are unknown: one sentence for every difference from `before`.
    """
    from qoslab.ios.device_config.restore import unrestored
    from qoslab.ios.device_config.running_config_parser import likely_hardware

    return unrestored(before, running, [pushed] if pushed else [], likely_hardware(before, family))


def ios_plain(file: str) -> str:
    """Return the path of a configuration; an error if Ansible could render some of its text as a template."""
    from ansible.errors import AnsibleFilterError

    from qoslab.ios.template_marks import template_mark

    if mark := template_mark(Path(file).read_text(encoding="utf-8")):
        raise AnsibleFilterError(f"{file}:{mark}; write the line without it")
    return file


class FilterModule:
    """Filter plugin; Ansible requires this name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"ios_differences": ios_differences, "ios_unrestored": ios_unrestored, "ios_plain": ios_plain}
