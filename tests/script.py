"""Scripts outside packages, such as those of `benches/`, as modules for tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

TOP = Path(__file__).parents[1]


def load_script(path: str) -> ModuleType:
    """Return the script at a path of the repository as a module, registered under its name for its dataclasses."""
    file = TOP / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module
