"""Effective values and findings of a pasted router configuration, without an experiment."""
