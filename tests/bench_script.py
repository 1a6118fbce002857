"""The scripts of `benches/`, for tests of what they do besides measuring."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

BENCHES = Path(__file__).parents[1] / "benches"


def bench_script(name: str) -> ModuleType:
    """The script as a module, which its dataclasses find by its name."""
    spec = importlib.util.spec_from_file_location(name, BENCHES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
