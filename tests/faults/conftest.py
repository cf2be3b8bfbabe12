"""What all tests of faults share: the process that forks the others, which is slow to start."""

from collections.abc import Iterator

import pytest

from tests.faults.zygote import Zygote


@pytest.fixture(scope="package")
def zygote() -> Iterator[Zygote]:
    running = Zygote()
    yield running
    running.close()
