"""The dependency audit passes only examined packages."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from ruamel.yaml import YAML

from script import load_script

TOP = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    return load_script("benches/audit.py")


def program(status: int, message: str = "") -> tuple[str, ...]:
    return (sys.executable, "-c", f"import sys; sys.stderr.write({message!r}); sys.exit({status})")


UNREACHED = (
    "error: failed to fetch advisory database https://github.com/RustSec/advisory-db",
    "pip_audit._service.interface.ConnectionError: Could not connect to PyPI's vulnerability feed",
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='x', port=443): Max retries exceeded",
)


@pytest.mark.parametrize("message", UNREACHED)
def test_unchecked_items_are_reported_and_do_not_pass(audit: ModuleType, message: str) -> None:
    look = audit.AuditCheck("weaknesses", program(1, message), "the database")
    status, result = audit.run(look, False)
    assert status == 2 and result.startswith("NOT RUN: the database is unreachable (")
    assert audit.run(look, True) == (0, "NOT RUN (--offline): it needs the database")


def test_failed_check_outranks_a_skipped_one(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    looks = [audit.AuditCheck("a", program(0)), audit.AuditCheck("b", program(1, UNREACHED[0]), "the database")]
    monkeypatch.setattr(audit, "BUILT_FILES", tmp_path)
    monkeypatch.setattr(audit, "checks", lambda python: looks)
    assert audit.main([]) == 2
    assert capsys.readouterr().out.startswith("a: passed\nb: NOT RUN: the database is unreachable (")
    assert audit.main(["--offline"]) == 0
    # A network error in the output of a check without a database is no excuse.
    looks.append(audit.AuditCheck("c", program(1, f"GPL-3.0 is not allowed\n{UNREACHED[0]}")))
    assert audit.main(["--offline"]) == 1
    assert "c: FAILED\nGPL-3.0 is not allowed" in capsys.readouterr().out
    missing = "error: failed to download `anstyle-wincon v3.0.11`\n\n  --offline was specified"
    looks[:] = [
        audit.AuditCheck("d", ("qoslab-no-such-program",)),
        audit.AuditCheck("e", ("cargo", "no-such")),
        audit.AuditCheck("f", program(1, missing)),
    ]
    assert audit.main([]) == 2
    assert capsys.readouterr().out == (
        "d: NOT RUN: there is no qoslab-no-such-program; tox -e audit installs it\n"
        "e: NOT RUN: there is no cargo no-such; tox -e audit installs it\n"
        "f: NOT RUN: not all crates are here; `cargo fetch --locked` fetches them\n"
    )


def test_package_without_a_known_licence_is_reported() -> None:
    options = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["pip-licenses"]
    assert "GPL" not in options["allow-only"].replace("MPL", "")
    assert "qoslab" not in json.dumps(options["ignore-packages"])


def test_release_has_its_sboms(audit: ModuleType) -> None:
    jobs = YAML(typ="safe").load(TOP / ".github/workflows/wheels.yml")["jobs"]
    steps = jobs["linux"]["steps"]
    made = next(number for number, step in enumerate(steps) if "-e audit" in step.get("run", ""))
    kept = [step["with"] for step in steps[made + 1 :] if "upload-artifact" in step.get("uses", "")]
    written = {word for look in audit.checks(Path("python")) for word in look.command if word.endswith(".cdx.json")}
    assert written == {str(audit.BUILT_FILES / "python.cdx.json")}
    (folder,) = (with_["path"] for with_ in kept)
    assert TOP / folder == audit.BUILT_FILES / "*.cdx.json"
