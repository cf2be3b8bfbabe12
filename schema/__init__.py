"""The shape of the graph: Strawberry types, inputs, scalars, the root, and how refusals become errors."""
