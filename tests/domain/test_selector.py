"""The selectors' language and its meaning."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInput
from domain.selector import LENGTH_MAX, REQUIREMENTS_MAX, VALUES_MAX, Operator, Requirement, matches, parse, text
from tests.support.selectors import NOT_NUMBERS, NUMBERS, VALUES, requirements

KEYS = st.from_regex("[A-Za-z0-9][A-Za-z0-9._-]{0,9}(/[A-Za-z0-9][A-Za-z0-9._-]{0,9})?", fullmatch=True)
ANY_VALUES = st.from_regex("[A-Za-z0-9._+:/~-]{0,12}", fullmatch=True)
FEW_KEYS = st.sampled_from(["a", "b", "c"])
LABELS = st.dictionaries(FEW_KEYS, VALUES, max_size=3)


@pytest.mark.parametrize(
    ("written", "key", "operator", "values"),
    [
        ("gpu.model=H100", "gpu.model", Operator.IN, ("H100",)),
        ("gpu.model==H100", "gpu.model", Operator.IN, ("H100",)),
        ("gpu.model!=H100", "gpu.model", Operator.NOT_IN, ("H100",)),
        ("zone in (b,a,b)", "zone", Operator.IN, ("a", "b")),
        ("zone notin (b,a)", "zone", Operator.NOT_IN, ("a", "b")),
        ("bc.dev/driver-kind.ipmi.power", "bc.dev/driver-kind.ipmi.power", Operator.EXISTS, ()),
        ("!spot", "spot", Operator.DOES_NOT_EXIST, ()),
        ("numa.nodes>1", "numa.nodes", Operator.GREATER_THAN, ("1",)),
        ("numa.nodes<1", "numa.nodes", Operator.LESS_THAN, ("1",)),
        ("numa.nodes>=1.5", "numa.nodes", Operator.AT_LEAST, ("1.5",)),
        ("numa.nodes<=-1", "numa.nodes", Operator.AT_MOST, ("-1",)),
        ("zone=", "zone", Operator.IN, ("",)),
        ("zone in ()", "zone", Operator.IN, ("",)),
        ("zone notin (,a,)", "zone", Operator.NOT_IN, ("", "a")),
        ("in in (in,notin)", "in", Operator.IN, ("in", "notin")),
        ("notin", "notin", Operator.EXISTS, ()),
    ],
)
def test_each_form_reads_as_its_operator(written: str, key: str, operator: Operator, values: tuple[str, ...]) -> None:
    assert parse(written) == (Requirement(key, operator, values),)


def test_white_space_may_stand_between_all_parts() -> None:
    spaced = "\t a \n in(\r x , y ) , b  ==  , ! c , d >= 2 "
    assert parse(spaced) == parse("a in (x,y),b=,!c,d>=2")
    assert text(parse(spaced)) == "a in (x,y),b=,!c,d>=2"


@pytest.mark.parametrize("written", ["", " ", "\n\t"])
def test_no_text_is_no_requirement_and_is_met_by_everything(written: str) -> None:
    assert parse(written) == ()
    assert matches((), {})


@pytest.mark.parametrize(
    ("written", "labels", "met"),
    [
        ("a=x", {"a": "x"}, True),
        ("a=x", {"a": "X"}, False),
        ("a=x", {}, False),
        ("a=", {}, False),
        ("a=", {"a": ""}, True),
        ("a!=x", {"a": "x"}, False),
        ("a!=x", {"a": "y"}, True),
        ("a!=x", {}, True),
        ("a in (x,y)", {"a": "y"}, True),
        ("a in (x,y)", {"a": "z"}, False),
        ("a notin (x,y)", {"a": "y"}, False),
        ("a notin (x,y)", {}, True),
        ("a", {"a": ""}, True),
        ("a", {"b": "x"}, False),
        ("!a", {"a": ""}, False),
        ("!a", {"b": "x"}, True),
        ("a>1", {"a": "2"}, True),
        ("a>1", {"a": "1"}, False),
        ("a>9", {"a": "10"}, True),
        ("a<1", {"a": "0.999"}, True),
        ("a<1", {"a": "1.0"}, False),
        ("a>=1", {"a": "01.0"}, True),
        ("a<=1", {"a": "-3"}, True),
        ("a<=1", {"a": "2"}, False),
        ("a>9007199254740992", {"a": "9007199254740993"}, True),
        ("a=x,b=y", {"a": "x", "b": "y"}, True),
        ("a=x,b=y", {"a": "x", "b": "z"}, False),
        ("a>1,a<3", {"a": "2"}, True),
    ],
)
def test_a_selector_means_what_kubernetes_means(written: str, labels: dict[str, str], met: bool) -> None:  # noqa: FBT001 - a table's column
    assert matches(parse(written), labels) is met


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_what_is_no_number_meets_no_comparison(value: str) -> None:
    for written in ("a>0", "a<0", "a>=0", "a<=0"):
        assert not matches(parse(written), {"a": value})


@given(NUMBERS, NUMBERS)
def test_numbers_compare_exactly(value: str, bound: str) -> None:
    met = {sign: matches(parse(f"a{sign}{bound}"), {"a": value}) for sign in (">", "<", ">=", "<=")}
    left, right = Decimal(value), Decimal(bound)
    assert met == {">": left > right, "<": left < right, ">=": left >= right, "<=": left <= right}


@given(LABELS, st.sets(VALUES, min_size=1, max_size=3))
def test_a_negation_is_met_exactly_when_what_it_negates_is_not(labels: dict[str, str], values: set[str]) -> None:
    listed = f"({','.join(values)})"
    assert matches(parse(f"a notin {listed}"), labels) is not matches(parse(f"a in {listed}"), labels)
    assert matches(parse("!a"), labels) is not matches(parse("a"), labels)


@given(requirements(KEYS, ANY_VALUES))
def test_the_canonical_form_reads_as_what_it_was_written_from(given_ones: tuple[Requirement, ...]) -> None:
    assert parse(text(given_ones)) == given_ones


@pytest.mark.parametrize(
    ("written", "place", "found", "expected"),
    [
        ("=b", 1, "'='", "a key like"),
        ("a,", 3, "the end", "a key like"),
        (",a", 1, "','", "a key like"),
        ("!", 2, "the end", "a key like"),
        ("!!a", 2, "'!'", "a key like"),
        ("-a", 1, "'-a'", "a key like"),
        ("a/b/c", 4, "'/c'", "a key like"),
        ("gpu model", 5, "'model'", "one of = == != in notin > < >= <= or a comma"),
        ("a IN (b)", 3, "'IN'", "one of = == != in"),
        ("!a=b", 3, "'='", "a comma and another requirement, or the end"),
        ("a=b=c", 4, "'='", "a comma and another requirement, or the end"),
        ("a=b)", 4, "')'", "a comma and another requirement, or the end"),
        ('gpu.model="H100"', 11, "'\"H100\"'", "a value without quotes"),
        ("a=b*", 4, "'*'", "any value: the key alone"),
        ("a=é", 3, "'é'", "a value without quotes"),
        ("a=(b)", 3, "'('", "a value without quotes"),
        ("a in b", 6, "'b'", "values in parentheses"),
        ("a in (b", 8, "the end", "the closing parenthesis"),
        ("a in (b c)", 9, "'c'", "the closing parenthesis"),
        ("a > x", 5, "'x'", "a number like"),
        ("a>", 3, "the end", "a number like"),
        ("a>1.", 4, "'.'", "a number like"),
        ("a>" + "1" * 31, 33, "'1'", "at most 30 digits"),
        ("a=" + "v" * 256, 258, "'v'", "255 characters at most"),
        ("k" * 318, 318, "'k'", "317 characters at most"),
    ],
)
def test_an_error_says_where_and_what_would_be_right(written: str, place: int, found: str, expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(written)
    assert caught.value.message.startswith(f"selector at character {place}: found {found}; expected ")
    assert expected in caught.value.message


def test_the_number_of_requirements_is_bounded() -> None:
    keys = [f"k{number}" for number in range(REQUIREMENTS_MAX)]
    assert len(parse(",".join(keys))) == REQUIREMENTS_MAX
    with pytest.raises(InvalidInput, match=f"found 'more'; expected at most {REQUIREMENTS_MAX} requirements"):
        parse(",".join([*keys, "more"]))


def test_the_number_of_different_values_is_bounded() -> None:
    values = [f"v{number}" for number in range(VALUES_MAX)]
    assert len(parse(f"a in ({','.join([*values, *values])})")[0].values) == VALUES_MAX
    with pytest.raises(InvalidInput, match=f"found 'more'; expected at most {VALUES_MAX} values"):
        parse(f"a in ({','.join([*values, 'more'])})")


def test_the_length_is_bounded_so_that_the_canonical_form_is_never_too_long() -> None:
    start = ",".join(["k" * 200] * 20) + ",zone in(w,"
    longest = start + "v" * (LENGTH_MAX - len(start.replace(" ", "") + ")")) + ")"
    read = parse(longest)
    assert len(text(read)) > LENGTH_MAX
    assert parse(text(read)) == read
    with pytest.raises(InvalidInput, match=f"{LENGTH_MAX + 1} characters .* at most {LENGTH_MAX} are taken"):
        parse(longest.replace("w", "ww"))


@given(st.text(st.sampled_from('ab1.-/=!<>(), \t\nin"é\0'), max_size=30) | st.text(max_size=30))
def test_any_text_is_read_or_refused_with_a_place_in_it(written: str) -> None:
    try:
        read = parse(written)
    except InvalidInput as refusal:
        place = re.match(r"selector at character (\d+): ", refusal.message)
        assert place
        assert 1 <= int(place[1]) <= len(written) + 1
    else:
        assert parse(text(read)) == read
