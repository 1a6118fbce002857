"""A testbed for network quality-of-service experiments: one file describes, one command runs and reports."""

__version__ = "0.1.0"
