"""A local ops package for Genie: one folder for each feature of `device.learn`, with one folder for each system."""

from genie import abstract

abstract.declare_package(feature="ops")
