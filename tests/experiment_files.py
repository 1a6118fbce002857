"""Experiment files of a test, with the templates that they need."""

import shutil
from pathlib import Path

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"
TEMPLATES = EXPERIMENTS / "templates"


def experiment_file(folder: Path, name: str, text: str) -> Path:
    """Write `text` to `folder`/`name`, next to a copy of the experiments' templates that the test may change."""
    shutil.copytree(TEMPLATES, folder / "templates", dirs_exist_ok=True)
    file = folder / name
    file.write_text(text)
    return file


def simulated_experiments() -> list[Path]:
    """Return the shipped experiments without routers of platform tc, whose kernel cannot be simulated."""
    return [
        file for file in sorted(EXPERIMENTS.glob("*.yml")) if "platform: tc" not in file.read_text(encoding="utf-8")
    ]
