"""tox plugin: environments with the same `env_dir` share it, where tox would create it again for each name."""

from __future__ import annotations

from typing import Any

from tox.tox_env.api import ToxEnv
from tox.tox_env.info import Info


class SharedInfo(Info):
    """Record of what is installed in an environment, without the environment's name."""

    def compare(self, value: Any, section: str, sub_section: str | None = None) -> Any:
        """Compare new information with the recorded one."""
        if section == ToxEnv.__name__:
            value = {**value, "name": ""}
        return super().compare(value, section, sub_section)


ToxEnv.cache = property(lambda env: SharedInfo(env.env_dir))  # type: ignore[assignment]
