"""How the properties are checked."""

from hypothesis import settings

# Tests are not timed: a busy machine is no counterexample.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
