"""A pasted configuration under named traffic, in virtual time, before and after a change."""
