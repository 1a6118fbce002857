"""Inventory of docs/real-routers.md for a project of containerlab, netlab, CML or GNS3."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/real-routers.md"


def project_inventory() -> str:
    """Return the text of the inventory."""
    (found,) = re.findall(r"^```yaml\n(all:\n.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return str(found)
