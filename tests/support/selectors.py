"""Hypothesis strategies for selectors and for the labels that they may or may not meet."""

from hypothesis import strategies as st

from domain.selector import COMPARISONS, Operator, Requirement

NUMBERS = st.sampled_from(["0", "1", "2", "-1", "1.0", "1.5", "01", "-0", "9" * 30, "0." + "0" * 29 + "1"])
VALUES = st.sampled_from(["", "a", "in", "notin", "NaN", "-", "1e3", "v1.2+x"]) | NUMBERS
NOT_NUMBERS = ["", "mixed", "NaN", "Infinity", "1e3", "0x10", "1_000", "+1", "1.", ".5", " 1", "1\n", "9" * 31]
NOT_NUMBERS += ["\N{ARABIC-INDIC DIGIT ONE}", "9" * 140_000]
"""What might be taken for a number; the last has more digits than PostgreSQL's numeric."""


def requirements(
    keys: st.SearchStrategy[str], values: st.SearchStrategy[str] = VALUES
) -> st.SearchStrategy[tuple[Requirement, ...]]:
    """Draw a few requirements as `parse` makes them, of any keys and values."""
    listed = st.sets(values, min_size=1, max_size=4).map(lambda found: tuple(sorted(found)))
    none: st.SearchStrategy[tuple[str, ...]] = st.just(())
    kinds = {
        Operator.IN: listed,
        Operator.NOT_IN: listed,
        Operator.EXISTS: none,
        Operator.DOES_NOT_EXIST: none,
        **dict.fromkeys(COMPARISONS, NUMBERS.map(lambda number: (number,))),
    }
    drawn = [st.builds(Requirement, keys, st.just(operator), values) for operator, values in kinds.items()]
    return st.lists(st.one_of(drawn), max_size=4).map(tuple)
