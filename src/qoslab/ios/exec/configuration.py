"""Exec commands about the configurations: showing, saving, erasing, reloading."""

from __future__ import annotations
