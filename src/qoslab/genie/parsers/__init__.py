"""A local parser package for Genie: one folder for each operating system, one class for each command."""

from genie import abstract

abstract.declare_package()
