"""The parts of `bench/reads.py`: one fleet, four servers on it, one load, and what was seen."""
