"""Kinds of qdiscs, filters and actions of a kernel; order of its modules; the search for a user-mode kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from qoslab.errors import MachineError
from qoslab.tc.kernel_kinds import probe, read_module_kinds
from qoslab.tc.user_mode_linux import find, load_order


def test_kernel_that_refuses_a_parameter_has_the_kind() -> None:
    def run(argv: list[str]) -> tuple[int, str]:
        if argv[:1] == ["uname"]:
            return 0, "6.1\n"
        if "cake" in argv:
            return 2, "Error: Specified qdisc kind is unknown.\n"
        return (2, "Error: bad burst\n") if "tbf" in argv else (0, "")

    found = probe(run)  # type: ignore[arg-type]
    assert "tbf" in found.qdiscs
    assert "cake" not in found.qdiscs
    assert {"flower", "u32"} <= found.filters
    assert "police" in found.actions


def test_kinds_are_refused_without_the_permission_to_try_them() -> None:
    with pytest.raises(MachineError, match="Operation not permitted"):
        probe(lambda argv: (2, "RTNETLINK answers: Operation not permitted\n"))


@pytest.fixture
def unpacked_package(tmp_path: Path) -> Path:
    """Provide the files of the package as `dpkg -x` writes them, with two modules."""
    program = tmp_path / "usr/bin/linux.uml"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    modules = tmp_path / "usr/lib/uml/modules/6.1.176"
    (modules / "kernel/net/sched").mkdir(parents=True)
    for name in ("sch_cake", "act_police", "cls_u32"):
        (modules / f"kernel/net/sched/{name}.ko").touch()
    (modules / "modules.dep").write_text(
        "kernel/net/sched/act_ife.ko: kernel/net/ife/ife.ko kernel/lib/crc.ko\n"
        "kernel/net/ife/ife.ko: kernel/lib/crc.ko\nkernel/lib/crc.ko:\nkernel/fs/nfs.ko:\n",
        encoding="utf-8",
    )
    return tmp_path


def test_unpacked_package_is_found_by_its_folder_its_program_and_path(unpacked_package: Path) -> None:
    program = unpacked_package / "usr/bin/linux.uml"
    for environment in (
        {"QOSLAB_UML": str(unpacked_package)},
        {"QOSLAB_UML": str(program)},
        {"PATH": str(program.parent)},
    ):
        image = find(environment)
        assert image is not None
        assert (image.program, image.release) == (program, "6.1.176")
    assert find({"PATH": str(unpacked_package)}) is None
    with pytest.raises(MachineError, match="QOSLAB_UML"):
        find({"QOSLAB_UML": str(unpacked_package / "usr")})


def test_modules_are_loaded_after_their_dependencies(unpacked_package: Path) -> None:
    modules = unpacked_package / "usr/lib/uml/modules/6.1.176"
    order = [Path(path).name for path in load_order(modules, ["kernel/net/sched/"])]
    assert order == ["crc.ko", "ife.ko", "act_ife.ko"]


def test_kernel_kinds_follow_from_its_modules(unpacked_package: Path) -> None:
    kinds = read_module_kinds(unpacked_package / "usr/lib/uml/modules/6.1.176")
    assert kinds.qdiscs == {"cake", "pfifo", "bfifo", "pfifo_fast"}
    assert (kinds.filters, kinds.actions) == ({"u32"}, {"police"})
