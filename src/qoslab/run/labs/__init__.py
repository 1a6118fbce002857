"""What runs cells, one module for each kind of lab."""
