"""The rules of the fleet, pure: no I/O, no clock, no randomness, no framework."""
