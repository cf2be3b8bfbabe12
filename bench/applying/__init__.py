"""The parts of `bench/apply.py`: a reported fleet, this server that applies it, and the floor that writes its rows."""
