"""Virtual lab: hosts and routers as network namespaces, held by one supervisor. Its interface is `Lab`.

The names below are imported on first use: pyroute2 alone takes a third of a second, which users of `linux_names` and
similar modules should not have to spend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qoslab.system.extras import require_extra

if TYPE_CHECKING:
    from qoslab.virtual_lab.lab import DaemonFailure, Lab, LabNode, Ssh
    from qoslab.virtual_lab.lab_processes import LabProcess
    from qoslab.virtual_lab.supervision import LabError

__all__ = ["DaemonFailure", "Lab", "LabError", "LabNode", "LabProcess", "Ssh"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_extra("lab")
    from qoslab.virtual_lab import lab

    return getattr(lab, name)
