"""The filter `ios_switch_differences`: what a switch's screens say against what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def ios_switch_differences(text: str, commands: Sequence[str], answers: Sequence[str], model: str) -> list[str]:
    """Sentences, one for each difference between the configuration `text` and what the show commands answered."""
    from qoslab.verification.switch import differences

    return differences(text, dict(zip(commands, answers, strict=True)), model)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """By name."""
        return {"ios_switch_differences": ios_switch_differences}
