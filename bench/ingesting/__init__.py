"""The parts of `bench/ingest.py`: reported nodes, this server that hears of them again, and the bare statements."""
