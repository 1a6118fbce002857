"""Running configurations as routers and switches of several releases print them; written for these tests."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "running_configs"


def running_config(name: str) -> str:
    """Return the configuration of a device by its model: R of routers, S of switches."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def change_by_others(text: str, *changes: tuple[str, str]) -> str:
    """Return the configuration after others have replaced lines, each of which must exist."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text
