"""Experiment files of a test, with the templates that they need."""

import shutil
from pathlib import Path

TEMPLATES = Path(__file__).resolve().parents[1] / "experiments/templates"


def experiment_file(folder: Path, name: str, text: str) -> Path:
    """Write `text` to `folder`/`name`, beside a copy of the experiments' templates that the test may change."""
    shutil.copytree(TEMPLATES, folder / "templates", dirs_exist_ok=True)
    file = folder / name
    file.write_text(text)
    return file
