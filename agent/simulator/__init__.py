"""A made-up fleet: believable machines, the same for the same seed, that report and change as real ones do."""
