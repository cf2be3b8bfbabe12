"""The faults of a boot: each is accounted for once, whatever of the log is read again."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.fault_book import FaultBook, Heard
from domain.kernel_log import read_record
from domain.known_faults import FAULTS_MAX, KnownFaults

BOOT = "11111111-2222-4333-8444-555555555555"
HERE, THERE = "0000:18:00", "0000:3b:00"
HERE_PCI, THERE_PCI = "00000000:18:00.0", "00000000:3B:00.0"
FIRST_LINE = "Linux version 6.8.0 (builder@example) #1 SMP"


def xid(code: int, rest: str = ", it failed", gpu: str = HERE) -> str:
    return f"NVRM: Xid (PCI:{gpu}): {code}{rest}"


def frame(sequence: int, message: str, *, priority: int = 4, step_us: int = 60_000_000) -> str:
    return f"{priority},{sequence},{sequence * step_us},-;{message}"


def book(known: KnownFaults | None = None) -> FaultBook:
    return FaultBook(known or KnownFaults(boot_id=BOOT))


def read(book: FaultBook, lines: Iterable[str]) -> list[Heard]:
    return [book.read(record) for line in lines if (record := read_record(line)) is not None]


def short(known: KnownFaults) -> list[tuple[int, int, int, str | None]]:
    return [(each.fault.code, each.sequence, each.count, each.device_id) for each in known.faults.values()]


def test_equal_faults_are_one_with_the_newest_record_and_all_that_there_were() -> None:
    reader = book()
    read(reader, [frame(1, xid(79)), frame(2, xid(31, ", pid=7, name=a")), frame(3, xid(31, ", pid=8, name=b"))])
    assert short(reader.known) == [(79, 1, 1, None), (31, 3, 2, None)]
    assert reader.known.read_to == 3


def test_what_was_read_in_an_earlier_life_is_not_counted_again_and_goes_on_as_one_burst() -> None:
    lines = [frame(number, xid(119), step_us=6_000_000) for number in range(1, 5)]
    first = book()
    read(first, lines[:2])
    again = book(first.known)
    heard = read(again, lines)
    assert short(again.known) == [(119, 4, 4, None)]
    assert [len(each.faults) for each in heard] == [0, 0, 1, 1]


def test_an_earlier_life_tells_which_fault_followed_from_which() -> None:
    first = book()
    read(first, [frame(1, xid(79), step_us=1000)])
    again = book(first.known)
    read(again, [frame(1, xid(79), step_us=1000), frame(2, xid(45), step_us=1000)])
    (_, removed) = again.known.faults.values()
    assert removed.fault.caused_by == 79


def test_what_was_forgotten_after_a_reset_does_not_come_back_with_a_restart() -> None:
    first = book(KnownFaults(boot_id=BOOT, gpus={HERE_PCI: "GPU-1", THERE_PCI: "GPU-2"}))
    lines = [frame(1, xid(48)), frame(2, xid(48, gpu=THERE)), frame(3, xid(119))]
    read(first, lines)
    cleared = first.known.without("GPU-1", up_to=3)
    again = book(cleared)
    read(again, lines)
    assert short(again.known) == [(48, 2, 1, "GPU-2")]
    read(again, [frame(4, xid(48))])
    assert short(again.known) == [(48, 2, 1, "GPU-2"), (48, 4, 1, "GPU-1")]


def test_what_came_after_a_reset_stays() -> None:
    reader = book(KnownFaults(boot_id=BOOT, gpus={HERE_PCI: "GPU-1"}))
    read(reader, [frame(1, xid(48)), frame(2, xid(119))])
    assert short(reader.known.without("GPU-1", up_to=1)) == [(119, 2, 1, "GPU-1")]


def test_a_gpu_is_known_by_the_logs_own_lines_and_stays_known() -> None:
    reader = book()
    named = f"NVRM: GPU at PCI:{HERE}: GPU-0a1b2c3d-0000-4000-8000-000000000001"
    read(reader, [frame(1, named), frame(2, xid(62))])
    assert reader.known.gpus == {HERE_PCI: "GPU-0a1b2c3d-0000-4000-8000-000000000001"}
    # Of a later life the log has lost the line, and NVML the GPU.
    later = book(reader.known)
    read(later, [frame(9, xid(79))])
    assert short(later.known)[-1] == (79, 9, 1, "GPU-0a1b2c3d-0000-4000-8000-000000000001")


def test_faults_are_placed_when_it_gets_known_whose_they_are_and_a_switchs_never() -> None:
    reader = book()
    read(reader, [frame(1, xid(62)), frame(2, f"nvidia-nvswitch0: SXid (PCI:{HERE}.0): 20034, Fatal, Link 3")])
    assert [each.device_id for each in reader.known.placed({HERE_PCI: "GPU-1"}).faults.values()] == ["GPU-1", None]


def test_two_gpus_that_nobody_can_name_are_two() -> None:
    reader = book()
    lost = "NVRM: fallen off the bus and is not responding to commands."
    read(reader, [frame(1, lost), frame(2, lost)])
    assert short(reader.known) == [(79, 1, 1, None), (79, 2, 1, None)]


def test_another_card_in_the_same_place_begins_anew() -> None:
    reader = book(KnownFaults(boot_id=BOOT, gpus={HERE_PCI: "GPU-1"}))
    read(reader, [frame(1, xid(48)), frame(2, xid(48))])
    reader.known = reader.known.placed({HERE_PCI: "GPU-2"})
    read(reader, [frame(3, xid(48))])
    assert short(reader.known) == [(48, 3, 1, "GPU-2")]


def test_the_last_value_of_154_stands_also_after_one_that_was_cut() -> None:
    reader = book()
    change = ", GPU recovery action changed from 0x0 (None) to 0x{} (x)"
    read(reader, [frame(1, xid(154, change.format(1))), frame(2, xid(154, change.format(2)))])
    read(reader, [frame(3, xid(154, ", GPU recovery action chan"))])
    (known,) = reader.known.faults.values()
    assert (known.fault.recovery, known.sequence, known.count) == (2, 3, 3)


def test_a_storm_is_bounded_and_faults_of_programs_go_first() -> None:
    reader = book()
    read(reader, [frame(1, xid(79))])
    read(reader, [frame(number, f"NVRM: Xid (PCI:{HERE} GPU-I:{number}): 13, x") for number in range(2, 402)])
    assert len(reader.known.faults) == FAULTS_MAX
    assert short(reader.known)[:2] == [(79, 1, 1, None), (13, 402 - FAULTS_MAX + 1, 1, None)]
    read(reader, [frame(500 + number, xid(62, gpu=f"{number:04x}:18:00")) for number in range(400)])
    assert len(reader.known.faults) == FAULTS_MAX
    assert {each.fault.code for each in reader.known.faults.values()} == {62}


def test_lost_records_are_counted_as_gaps() -> None:
    reader = book()
    heard = read(reader, [frame(1, "usb 1-1: new device"), frame(9, "usb 1-1: gone"), frame(10, xid(79))])
    assert [each.lost for each in heard] == [None, 7, None]
    assert reader.known.gaps == 1


def test_only_the_kernels_word_counts() -> None:
    reader = book()
    read(reader, [frame(1, xid(79), priority=12)])
    assert reader.known.faults == {}


def test_of_a_log_with_several_boots_the_last_one_counts_again_and_again() -> None:
    lines = [
        *(f"[    0.000000] {FIRST_LINE}", f"[  900.000000] {xid(48)}", f"[  950.000000] {xid(79)}"),
        *(f"[    0.000000] {FIRST_LINE}", f"[   20.000000] {xid(62)}"),
    ]
    first = book()
    read(first, lines)
    assert short(first.known) == [(62, 20_000_000, 1, None)]
    again = book(first.known)
    read(again, lines)
    assert short(again.known) == [(62, 20_000_000, 1, None)]


def test_of_a_journal_the_present_boot_counts() -> None:
    def entry(boot: str, code: int) -> str:
        return (
            f'{{"_TRANSPORT":"kernel","_BOOT_ID":"{boot}","_SOURCE_MONOTONIC_TIMESTAMP":"5","MESSAGE":"{xid(code)}"}}'
        )

    reader = book()
    read(reader, [entry("9" * 32, 79), entry(BOOT.replace("-", ""), 62)])
    assert short(reader.known) == [(62, 5, 1, None)]


def test_a_fault_of_a_program_again_is_no_news() -> None:
    reader = book()
    heard = read(reader, [frame(1, xid(31)), frame(2, xid(31)), frame(3, xid(48)), frame(4, xid(48))])
    assert [each.is_news for each in heard] == [True, False, True, True]


CODES = st.sampled_from([13, 31, 45, 48, 62, 79, 119])
RECORDS = st.lists(st.tuples(CODES, st.sampled_from([HERE, THERE]), st.integers(1, 20_000_000)), max_size=30)


@given(RECORDS, st.lists(st.integers(0, 30), max_size=4))
@settings(max_examples=100)
def test_restarts_anywhere_change_nothing(drawn: list[tuple[int, str, int]], cuts: list[int]) -> None:
    at_us, lines = 0, []
    for sequence, (code, gpu, pause_us) in enumerate(drawn, start=1):
        at_us += pause_us
        lines.append(f"4,{sequence},{at_us},-;{xid(code, gpu=gpu)}")
    whole = book()
    read(whole, lines)
    known = KnownFaults(boot_id=BOOT)
    for cut in [*sorted(cuts), len(lines)]:
        life = book(known)
        read(life, lines[:cut])
        known = life.known
    assert dict(known.faults) == dict(whole.known.faults)
