"""Faults of everything, while clients record what they saw; a checker holds it against the database."""
