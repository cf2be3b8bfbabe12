"""Records of a kernel log, in every form that one is kept in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.kernel_log import LINE_LENGTH_MAX, MESSAGE_LENGTH_MAX, Record, read_record

SAID = "NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus."
MAY_2024_US = 1_714_564_800_000_000  # 2024-05-01T12:00:00Z


def journal(**fields: object) -> str:
    return json.dumps({"_TRANSPORT": "kernel", "MESSAGE": SAID, **fields})


@pytest.mark.parametrize(
    ("line", "at_us"),
    [
        (SAID, None),
        (f"[   12.345678] {SAID}", 12_345_678),
        (f"[   12.345678] [ T1946] {SAID}", 12_345_678),
        (f"[   12.345678][  C3] {SAID}", 12_345_678),
        (f"[Wed May  1 12:00:00 2024] {SAID}", MAY_2024_US),
        (f"2024-05-01T12:00:00,000007+00:00 {SAID}", MAY_2024_US + 7),
        (f"May  1 14:25:31 node-7 kernel: [12.345678] {SAID}", 12_345_678),
        (f"2024-05-01T14:00:00.000000+02:00 node-7 kernel: {SAID}", MAY_2024_US),
        (f"2024-05-01T12:00:00+0000 node-7 kernel: {SAID}", MAY_2024_US),
        (f" python3-4242    [007] d..1.    12.345678: nvidia_dev_xid: {SAID}", 12_345_678),
        (f"May 01 14:25:31.123456 node-7 kernel: [12.345678] {SAID}", 12_345_678),
        (f"[   12.345678] node-7 kernel: {SAID}", 12_345_678),
        (f"Wed 2024-05-01 12:00:00 UTC node-7 kernel: {SAID}", MAY_2024_US),
        (f"[Wed May 99 12:00:00 2024] {SAID}", None),
        (f"2024-13-01T00:00:00+00:00 {SAID}", None),
        (f"0001-01-01T00:00:00+14:00 {SAID}", -62_135_647_200_000_000),
    ],
)
def test_what_stands_before_a_message_is_taken_off_and_its_time_is_read(line: str, at_us: int | None) -> None:
    assert read_record(line) == Record(message=SAID, at_us=at_us)


@pytest.mark.parametrize(
    ("line", "facility"),
    [
        (f"<4>[   12.345678] {SAID}", 0),
        (f"<12>[   12.345678] {SAID}", 1),
        (f"kern  :warn  : [   12.345678] {SAID}", 0),
        (f"user  :notice: [   12.345678] {SAID}", 1),
        (f"local3:err   : [   12.345678] {SAID}", 1),
    ],
)
def test_lines_that_tell_who_wrote_them_are_heard_on_it(line: str, facility: int) -> None:
    assert read_record(line) == Record(message=SAID, facility=facility, at_us=12_345_678)


def test_a_record_of_the_kernels_device_has_number_time_and_writer() -> None:
    assert read_record(f"4,871,12345678,-,caller=T7;{SAID}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:18:00.0") == Record(
        message=SAID, facility=0, sequence=871, at_us=12_345_678
    )
    assert read_record("12,871,5,-;a; b") == Record(message="a; b", facility=1, sequence=871, at_us=5)


def test_escaped_bytes_of_a_record_become_text_and_lines() -> None:
    record = read_record(r"3,1,2,-;first\x0asecond \xc3\xa9 \x5c \xff")
    assert record is not None
    assert record.message == "first\nsecond é \\ �"


def test_what_a_device_calls_itself_stands_before_no_message() -> None:
    assert read_record(f"[ 1.5] input: kernel: {SAID}") == Record(message=f"input: kernel: {SAID}", at_us=1_500_000)


def test_a_line_of_a_dictionary_says_nothing_of_a_driver() -> None:
    assert read_record(" SUBSYSTEM=pci") == Record(message="SUBSYSTEM=pci")


@pytest.mark.parametrize(
    ("entry", "facility"),
    [
        (journal(SYSLOG_FACILITY="0", SYSLOG_IDENTIFIER="kernel"), 0),
        (journal(), 0),
        (journal(SYSLOG_FACILITY="1"), 1),  # written by a program to /dev/kmsg
        (journal(SYSLOG_IDENTIFIER="someone"), 1),
        (journal(SYSLOG_FACILITY="x"), 1),
        (journal(_TRANSPORT="syslog", SYSLOG_FACILITY="0", SYSLOG_IDENTIFIER="kernel"), 1),
    ],
)
def test_of_a_journal_only_the_kernels_own_entries_are_the_kernels(entry: str, facility: int) -> None:
    record = read_record(entry)
    assert record is not None
    assert (record.message, record.facility) == (SAID, facility)
    assert record.is_of_kernel == (facility == 0)


def test_a_journals_entry_has_its_boot_and_its_time_since_it() -> None:
    record = read_record(journal(_BOOT_ID="b1", _SOURCE_MONOTONIC_TIMESTAMP="77", __MONOTONIC_TIMESTAMP="99"))
    assert record == Record(message=SAID, facility=0, at_us=77, boot_id="b1")
    spelled = read_record(journal(MESSAGE=[*SAID.encode(), 255], __MONOTONIC_TIMESTAMP="99"))
    assert spelled == Record(message=f"{SAID}�", facility=0, at_us=99)


@pytest.mark.parametrize(
    "text",
    ["", "   ", "{", "{}", "[]", '{"MESSAGE": 7}', '{"MESSAGE": [256]}', '{"MESSAGE": null}', '{"a":' * 20_000],
)
def test_what_is_no_record_is_none(text: str) -> None:
    read = read_record(text)
    assert read is None or read.message == text


@pytest.mark.parametrize(
    "piece", ["a-1 ", "-1 [1] ", "kernel: ", "[ 1.5] ", "<4>", "kern :warn : ", " ", "x", "\\\\x0a"]
)
def test_long_repetitions_are_read_in_linear_time(piece: str) -> None:
    for start in ("", "3,1,2,-;", "[ 1.5] ", "2024-05-01T12:00:00 "):
        for _ in range(20):
            read_record(start + piece * 20_000)


def test_long_lines_are_cut() -> None:
    record = read_record(f"[ 1.0] {'x' * 10 * LINE_LENGTH_MAX}")
    assert record is not None
    assert len(record.message) == MESSAGE_LENGTH_MAX


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    read_record(text)


@given(
    st.lists(
        st.sampled_from(
            [
                "<4>",
                "kern  :warn  : ",
                "[ 1.5] ",
                "[ T1] ",
                "host kernel: ",
                "2024-05-01T12:00:00 ",
                "3,4,5,-;",
                "{",
                '"',
            ]
        ),
        max_size=6,
    )
)
def test_any_order_of_prefixes_is_read(parts: list[str]) -> None:
    read_record("".join(parts) + SAID)
