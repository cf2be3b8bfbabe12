"""A rack with faults, beside the product: what stands in it, what agents know of it, and what must come of that."""
