"""What an experiment is: immutable, validated values. Nothing here reads files, clocks or the machine."""
