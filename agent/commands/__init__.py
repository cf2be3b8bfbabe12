"""Commands: what the server tells this node to do, done at most once."""
