import pytest

from domain.identity_key import IdentityKey, KeySource, NeedsState, choose, kept_key, recorded_key

MACHINE_ID = "0123456789abcdef0123456789abcdef"


def test_an_explicit_key_wins_over_everything() -> None:
    found = choose(explicit="rack7-u12", machine_id=MACHINE_ID, container=True)
    assert found == IdentityKey("rack7-u12", KeySource.EXPLICIT)


@pytest.mark.parametrize("text", ["", "a b", "x" * 129, "naïve", "line\n"])
def test_an_explicit_key_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="printable"):
        choose(explicit=text, machine_id=None, container=False)


def test_a_machine_id_gives_one_key_for_ever() -> None:
    found = choose(explicit=None, machine_id=f"{MACHINE_ID}\n", container=False)
    # Written out: a release that changes it makes every node of every fleet a new one.
    assert found == IdentityKey("4c788488-9a22-518c-8029-8aa40f0b29ef", KeySource.MACHINE_ID)


@pytest.mark.parametrize("machine_id", [None, "", "uninitialized\n", "0" * 32, "not hexadecimal at all, 32 chars!"])
def test_without_a_machine_id_a_key_has_to_be_kept(machine_id: str | None) -> None:
    assert isinstance(choose(explicit=None, machine_id=machine_id, container=False), NeedsState)


def test_the_machine_id_that_a_container_shows_is_not_its_own() -> None:
    assert isinstance(choose(explicit=None, machine_id=MACHINE_ID, container=True), NeedsState)


def test_a_kept_key_is_a_uuid_in_one_spelling() -> None:
    assert kept_key("  873E2FF1-5BF1-480A-ADE6-6882B0EC43F0\n").text == "873e2ff1-5bf1-480a-ade6-6882b0ec43f0"
    with pytest.raises(ValueError, match="badly formed"):
        kept_key("my node")


def test_a_recorded_host_is_known_by_its_hardware_in_any_order() -> None:
    one = recorded_key(["gpu:GPU-1", "mac:00:11"], "digest one")
    assert recorded_key(["mac:00:11", "gpu:GPU-1", "gpu:GPU-1"], "digest two") == one
    assert recorded_key(["gpu:GPU-2"], "digest one") != one


def test_a_recorded_host_without_identifiers_is_known_by_its_content() -> None:
    assert recorded_key([], "digest one") == recorded_key([], "digest one")
    assert recorded_key([], "digest one") != recorded_key([], "digest two")
