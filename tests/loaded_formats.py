"""The types of the programs' formats as a module, which is otherwise a stub for annotations."""

from __future__ import annotations
import __future__

import sys
from pathlib import Path
from types import ModuleType

from qoslab.system import program_formats


def load_formats() -> ModuleType:
    """Execute the stub as a module, with annotations that may refer to later classes."""
    module = ModuleType("loaded_program_formats")
    sys.modules[module.__name__] = module
    stub = Path(program_formats.__file__).with_suffix(".pyi")
    code = compile(stub.read_text(encoding="utf-8"), str(stub), "exec", __future__.annotations.compiler_flag)
    exec(code, vars(module))
    return module
