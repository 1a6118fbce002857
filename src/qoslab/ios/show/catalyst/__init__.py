"""Renderers of the Catalyst's `show` output."""
