"""Files of the package and of the crates: two share a name only if they are the same part of sibling packages."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import combinations
from pathlib import Path

TOP = Path(__file__).parents[2]
GIVEN = {"__init__.py", "base.py", "mod.rs", "lib.rs", "main.rs", "tests.rs"}
"""Names by convention: packages and crates, interfaces of extension points, and tests inside a crate."""
IOS = r"ios(/(commands|model|show|exec|catalyst))*|genie(/ops/(qos|ip_sla)(/ios(xe)?)?)?"
LAYERS = r"model|schema|analysis|results|report|cli"
ENGINE = r"qos-core/src(/(config|compile|plan|counters|queueing|router|catalyst))?|qos-router/src/plane"
CRATES = r"(qos-core|qos-router|qos-sim|qos-pcap|ip-sla|ip-sla-host|flood)/src(/forwarding|/run)?"
SAME_PART = {
    IOS: "a feature of IOS: its model, commands, output, and the parser of its output",
    LAYERS: "a subject of experiments: its model, checks, analysis, report and command",
    r"explain|policy|trial": "a question about a policy: its answer, input and text",
    r"simulation|trial": "an input of the simulator",
    r"exchange/(routers|topologies)|policy": "a conversion of the configurations of others",
    r"traffic|exchange(/readers)?": "a traffic tool and its files",
    r"live|report": "a page for browsers",
    r"lab_kinds|run/workers(/(virtual|external))?|run/real": "a kind of lab: its description and its worker",
    r"run/real/(access|preflight)": "a part of the access to real devices, and the check before its use",
    ENGINE: "a feature of the engine: its configuration, plan, counters and work",
}
"""Reason by the packages of which two may share a name."""
ANY = (
    (r"^cli$", "the command of a module"),
    (r"/(tests|examples)(/|$)", "the tests and examples of a module"),
    (r"^fuzz-targets/src$", "the fuzz target of a module"),
)
"""Packages that share names with any other."""
OF_CRATES = "capture config error explain mistaken packet report responder schema"
"""Parts that several crates have."""


def are_similar(name: str, one: str, other: str) -> bool:
    """Return whether two packages may each have a file of this name."""
    if any(re.search(pattern, each) for pattern, _ in ANY for each in (one, other)):
        return True
    patterns = [*SAME_PART, *([CRATES] if name.removesuffix(".rs") in OF_CRATES.split() else [])]
    return any(re.fullmatch(each, one) is not None and re.fullmatch(each, other) is not None for each in patterns)


def test_two_files_share_a_name_only_in_sibling_packages() -> None:
    packages: dict[str, list[str]] = defaultdict(list)
    for top, suffix in ((TOP / "src/qoslab", "py"), (TOP / "crates", "rs")):
        for path in sorted(top.rglob(f"*.{suffix}")):
            packages[path.name].append(path.parent.relative_to(top).as_posix())
    shared = {name: found for name, found in packages.items() if name not in GIVEN}
    apart = [
        f"{name}: {one} and {other}"
        for name, found in shared.items()
        for one, other in combinations(found, 2)
        if not are_similar(name, one, other)
    ]
    assert not apart, "name files with different subjects differently"
