"""Commands in a folder with malicious modules and settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import corpus_runs
from corpus_experiments import folder
from harness import CaseResult, HostileCase, Make

from hostile_files import BASE

EXECUTED = "open('executed', 'a').write(__name__)\n"
MODULES = (
    *("click", "jinja2", "json", "matplotlib", "numpy", "pandas", "plotly", "pyarrow", "qoslab", "re2", "secrets"),
    *("sitecustomize", "usercustomize", "conftest", "yaml", "ansible", "genie", "pyats", "scipy", "textwrap", "rich"),
)
"""Libraries of qoslab and of Python, and files that other programs execute."""
SETTINGS = {
    "a matplotlibrc": {"matplotlibrc": "backend: module://executed\n"},
    "an ansible.cfg": {"ansible.cfg": "[defaults]\ncallback_plugins = .\nlibrary = .\n"},
    "a pdbrc": {".pdbrc": "import os; os.system('touch executed')\n"},
    "settings of pip and uv": {"pip.conf": "[global]\ntarget = .\n", "uv.toml": "[pip]\nverify-hashes = false\n"},
    "projects of Python": {"pyproject.toml": "[tool.uv]\n", "setup.cfg": "[x]\n", "pyvenv.cfg": "home = .\n"},
    "settings of Jupyter": {"jupyter_config.py": EXECUTED, "jupyter_notebook_config.py": EXECUTED},
    "a toolchain": {"rust-toolchain.toml": "[toolchain]\nchannel = 'none'\n", ".cargo/config.toml": "[build]\n"},
    "an inventory of another project": {
        "inventory/hosts.yml": "all: {vars: {x: \"{{ lookup('pipe', 'touch executed') }}\"}}\n"
    },
    "templates of reports": {"reports/report.html.j2": "{{ 1 / 0 }}", "reports/report.css": "@import 'x'"},
}
POLICY = "policy-map P\n class class-default\n  shape average 1000000\n"
COMMANDS: dict[str, tuple[str, ...]] = {
    "list": ("list",),
    "validate": ("validate", "e.yml"),
    "plan": ("plan", "e.yml", "--lab", "simulated"),
    "policy": ("policy", "policy.txt"),
    "policy --kernel": ("policy", "policy.txt", "--kernel", "--rate", "50m"),
    "report": ("report", "run"),
    "compare": ("compare", "run", "run"),
    "export": ("export", "run", "--format", "ro-crate", "--to", "crate.zip"),
}


def executes_nothing(place: Path, found: CaseResult) -> None:
    """Check that no code of the folder was executed."""
    assert not list(place.rglob("executed"))


def leftovers(files: dict[str, str], *, with_run: bool) -> Make:
    """Write malicious files next to an experiment, a policy, and a run."""

    def make(place: Path) -> None:
        folder({"e.yml": BASE, "policy.txt": POLICY, **files})(place)
        if with_run:
            corpus_runs.run()(place)

    return make


def cases() -> Iterator[HostileCase]:
    """Yield each command in each folder."""
    everything = {f"{name}.py": EXECUTED for name in MODULES}
    packages = {f"{name}/__init__.py": EXECUTED for name in MODULES}
    folders = {"modules": everything, "packages": packages, **SETTINGS}
    folders["all of it"] = everything | {name: text for each in SETTINGS.values() for name, text in each.items()}
    for command, words in COMMANDS.items():
        for name, files in folders.items():
            make = leftovers(files, with_run="run" in words)
            statuses = (0, 1, 2, 3) if "run" in words else (0,)
            yield HostileCase(
                f"{command} in a folder with {name}",
                make,
                words,
                statuses,
                writes=corpus_runs.WRITES if "run" in words else (),
                processor_s=8.0,
                memory_mib=600.0,
                check=executes_nothing,
            )
