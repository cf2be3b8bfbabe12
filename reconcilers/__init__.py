"""Level-triggered loops: each looks at the state, decides in `domain`, and may be run again at any time."""
