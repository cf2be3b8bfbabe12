"""Labels that agents and operators give, and those of drivers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.driver_labels import DRIVER_PREFIXES, DRIVERS_MAX, Driver, driver_labels
from domain.errors import Conflict, InvalidInput
from domain.label_text import is_key, is_value
from domain.labels import LABELS_MAX, GivenLabel, given_labels, label_change, relabelled
from domain.selector import matches, parse

KEYS = st.sampled_from(["zone", "example.org/rack", "spot", "a", "b"])


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (GivenLabel("", "x"), "set.1.key: '' is no key"),
        (GivenLabel("a b", "x"), "set.1.key: 'a b' is no key"),
        (GivenLabel("a/b/c", "x"), "set.1.key: 'a/b/c' is no key"),
        (GivenLabel("k" * 318, "x"), "set.1.key"),
        (GivenLabel("zone", "x"), "set.1.key: zone is given twice"),
        (GivenLabel("gpu.model", "x"), "set.1.key: gpu.model is told by the inventory"),
        (GivenLabel("bc.dev/driver.x", "x"), "set.1.key: keys that begin with bc.dev/ are the system's"),
        (GivenLabel("rack", "a b"), "set.1.value: 'a b' is no value"),
        (GivenLabel("rack", "v" * 256), "set.1.value"),
        (GivenLabel("rack", "a\n"), "set.1.value"),
    ],
)
def test_a_label_that_cannot_be_is_refused_with_its_place(label: GivenLabel, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        given_labels("set", [GivenLabel("zone", "a"), label])
    assert refused.value.message.startswith(said)


@pytest.mark.parametrize("key", ["gpu.model", "bc.dev/driver-kind.ipmi.power", "no key"])
def test_what_cannot_be_set_cannot_be_removed(key: str) -> None:
    with pytest.raises(InvalidInput, match=r"^remove\.0: "):
        label_change([], [key])


def test_a_key_is_set_or_removed_but_not_both() -> None:
    with pytest.raises(InvalidInput, match="remove: zone is also set"):
        label_change([GivenLabel("zone", "a")], ["zone"])


@given(st.dictionaries(KEYS, st.just("x")), st.dictionaries(KEYS, st.just("y")), st.sets(KEYS))
def test_a_change_sets_and_removes_and_leaves_the_rest(
    current: dict[str, str], put: dict[str, str], remove: set[str]
) -> None:
    change = label_change([GivenLabel(*each) for each in put.items()], sorted(remove - put.keys()))
    labels = relabelled(current, change)
    assert labels == {key: value for key, value in (current | put).items() if key in put or key not in remove}
    assert relabelled(labels, change) == labels


def test_labels_are_bounded() -> None:
    many = [GivenLabel(f"k{number}", "") for number in range(LABELS_MAX)]
    full = given_labels("labels", many)
    with pytest.raises(InvalidInput, match="labels: 65 labels; at most 64"):
        given_labels("labels", [*many, GivenLabel("more", "")])
    with pytest.raises(InvalidInput, match="remove: 65 keys"):
        label_change([], [f"k{number}" for number in range(LABELS_MAX + 1)])
    with pytest.raises(Conflict, match="the node would have 65 labels"):
        relabelled(full, label_change([GivenLabel("more", "")], []))
    assert len(relabelled(full, label_change([GivenLabel("more", "")], ["k0"]))) == LABELS_MAX


def test_drivers_are_labelled_with_version_and_kinds() -> None:
    drivers = [
        Driver("libvirt-kvm", "1.2.0"),
        Driver("ipmi", None, ("power", "inspect", "Power", "2x", "", "k" * 33, "a_b")),
    ]
    assert driver_labels(drivers) == {
        "bc.dev/driver.libvirt-kvm": "1.2.0",
        "bc.dev/driver.ipmi": "unknown",
        "bc.dev/driver-kind.ipmi.power": "1",
        "bc.dev/driver-kind.ipmi.inspect": "1",
    }


@pytest.mark.parametrize("driver_id", ["", "IPMI", "a b", "a/b", "é", "a\n", "x" * 129])
def test_a_driver_whose_id_no_label_carries_is_skipped(driver_id: str) -> None:
    assert driver_labels([Driver(driver_id, "1", ("power",))]) == {}


def test_kinds_and_drivers_are_bounded() -> None:
    many = tuple(f"k{number}" for number in range(40))
    assert len(driver_labels([Driver("x", "1", ("Bad", "k0", *many))])) == 1 + 32
    with pytest.raises(InvalidInput, match="drivers: 65; at most 64"):
        driver_labels([Driver("x")] * (DRIVERS_MAX + 1))


@pytest.mark.parametrize(
    ("version", "value"), [(None, "unknown"), ("", "unknown"), ("N/A", "unknown"), ("v1 (beta)", "v1-beta")]
)
def test_a_version_reads_as_selectors_can_say_it(version: str | None, value: str) -> None:
    assert driver_labels([Driver("x", version)]) == {"bc.dev/driver.x": value}


@given(st.lists(st.builds(Driver, st.text(max_size=8), st.none() | st.text(), st.lists(st.text(max_size=8)))))
def test_whatever_drivers_say_selectors_can_name_their_labels(drivers: list[Driver]) -> None:
    labels = driver_labels(drivers)
    for key, value in labels.items():
        assert key.startswith(DRIVER_PREFIXES)
        assert is_key(key)
        assert is_value(value)
        assert matches(parse(f"{key}={value}"), labels)
