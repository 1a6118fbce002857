"""Model of an experiment: immutable, validated values. Nothing here reads files, clocks or the machine."""
