"""Filter `ios_switch_differences`: differences of a switch's show output from the intended configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def ios_switch_differences(text: str, commands: Sequence[str], answers: Sequence[str], model: str) -> list[str]:
    """Return sentences, one for each difference between the configuration `text` and the show output."""
    from qoslab.verification.switch import differences

    return differences(text, dict(zip(commands, answers, strict=True)), model)


class FilterModule:
    """Filter plugin; Ansible requires this name."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """Return the filters by name."""
        return {"ios_switch_differences": ios_switch_differences}
