"""What benches share: a PostgreSQL of their own, programs they start, progress, and what is to be reached."""
