"""The node's identity certificate, read from a file."""

from datetime import timedelta
from pathlib import Path

import pytest

from agent.certificate import read_certificate
from agent.failures import WronglyCalled
from agent.wire import Certificate
from tests.agent.certificates import T0, certificate_pem, key_pem


def test_the_first_certificate_of_a_chain_is_told_whatever_else_the_file_holds(tmp_path: Path) -> None:
    file = tmp_path / "node.pem"
    file.write_bytes(key_pem() + certificate_pem(0xF00D, 90) + certificate_pem(7, 3650))
    assert read_certificate(file) == Certificate(serial="f00d", not_before=T0, not_after=T0 + timedelta(days=90))


@pytest.mark.parametrize("cut", [0, 60, 200])
@pytest.mark.parametrize("before", [b"", b"hello\n", key_pem()])
def test_a_file_without_a_whole_certificate_is_said_to_hold_none(tmp_path: Path, before: bytes, cut: int) -> None:
    file = tmp_path / "node.pem"
    file.write_bytes(before + certificate_pem(1, 1)[:cut])
    with pytest.raises(WronglyCalled, match=r"node\.pem holds no certificate in PEM"):
        read_certificate(file)


def test_a_file_that_cannot_be_read_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(WronglyCalled, match="No such file"):
        read_certificate(tmp_path / "missing.pem")
    with pytest.raises(WronglyCalled, match="directory"):
        read_certificate(tmp_path)
