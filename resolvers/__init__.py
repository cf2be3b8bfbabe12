"""Use cases: load, ask the domain, save; the context of an operation, its loaders, and the feed."""
