"""The command line: grammar, terminal, shell and sessions, without IO."""
