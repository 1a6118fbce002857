"""IOS command line without I/O: grammar, terminal and sessions."""
