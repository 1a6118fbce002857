"""A local ops package for Genie: one folder for each feature that `device.learn` takes, in it one for each system."""

from genie import abstract

abstract.declare_package(feature="ops")
