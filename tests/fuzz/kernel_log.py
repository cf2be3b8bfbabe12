"""Any bytes as a kernel log, guided by what of the reader they reach: `make fuzz`.

No input makes the reader raise or run long, and what is known stays bounded and can be kept, told and judged.
"""

import sys
import tempfile
from pathlib import Path
from typing import Final

import atheris
import msgspec

with atheris.instrument_imports(include=["domain"]):
    from agent.kernel.told import reported_xid
    from domain.fault_book import FaultBook
    from domain.fault_scan import SeenFault
    from domain.kernel_log import read_record
    from domain.known_faults import FAULTS_MAX, KnownFault, KnownFaults
    from domain.xid_verdict import Circumstances, judge

BYTES_MAX: Final = 8192
SECONDS_EACH_MAX: Final = 2
DICTIONARY: Final = Path(__file__).with_suffix(".dict")
SEEDS: Final = Path(__file__).with_suffix(".txt")
_KEPT: Final = msgspec.json.Decoder(tuple[KnownFault, ...])


def read_log(content: bytes) -> None:
    """Read a log, once whole and once more as after a restart."""
    lines = content.decode("utf-8", "replace").split("\n")
    known = KnownFaults(boot_id="11112222-3333-4444-5555-666677778888")
    for _ in range(2):
        book = FaultBook(known)
        for line in (*lines, content.decode("latin-1")):
            record = read_record(line)
            if record is not None:
                book.read(record)
        known = book.known.placed({"00000000:18:00.0": "GPU-1"})
    faults = tuple(known.faults.values())
    assert len(faults) <= FAULTS_MAX
    assert _KEPT.decode(msgspec.json.encode(faults)) == faults
    for each in faults:
        assert each.count >= 1
        judge(SeenFault(number=0, line=0, fault=each.fault), Circumstances())
        msgspec.json.encode(reported_xid(each, known.boot_id))


def main() -> None:
    """Fuzz for the seconds that are given; the status is not 0 when an input was found that must not be."""
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(SEEDS.read_text(encoding="utf-8").split("\n\n")):
            Path(corpus, f"seed-{number}").write_text(seed, encoding="utf-8")
        limits = (
            f"-max_total_time={sys.argv[1]}",
            f"-max_len={BYTES_MAX}",
            f"-timeout={SECONDS_EACH_MAX}",
            "-len_control=0",
        )
        found = f"-artifact_prefix={tempfile.gettempdir()}/"
        atheris.Setup([sys.argv[0], *limits, found, f"-dict={DICTIONARY}", "-print_final_stats=1", corpus], read_log)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
