import io
from pathlib import Path

import pytest
from rich.console import Console

from agent.doctor import Finding, examine, render
from agent.host.answers import Cause, Missing
from agent.host.files import READ_BYTES_MAX, Fact, TreeSource
from agent.host.options import HostOptions
from domain.availability import Availability
from domain.documents.gpus import Enumeration, Gpu, GpusSection
from domain.sections import SECTION_NAMES
from tests.agent.host.trees import Tree, write_server


class UnprivilegedSource(TreeSource):
    """What the kernel keeps for root is denied."""

    def read(self, path: str, limit: int = READ_BYTES_MAX) -> bytes | Missing:
        if path.endswith(("product_uuid", "_serial", "tables/DMI")):
            return Missing(Cause.DENIED, f"{path}: permission denied")
        return super().read(path, limit)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path / "root")
    write_server(tree)
    tree.write("/proc/pressure/cpu", "some avg10=1.25 avg60=0 avg300=0 total=0\n")
    tree.facts[Fact.READS, "/dev/kmsg"] = Missing(Cause.DENIED, "/dev/kmsg: permission denied")
    return tree


def found(findings: list[Finding], section: str, fact: str) -> Finding:
    (finding,) = [item for item in findings if (item.section, item.fact) == (section, fact)]
    return finding


def test_a_denied_fact_names_its_place_and_the_remedy(tree: Tree) -> None:
    findings = examine(UnprivilegedSource(tree.root, tree.source.ask))
    uuid = found(findings, "system", "productUuid")
    assert uuid.outcome is Availability.UNAVAILABLE
    assert uuid.reason == ("/sys/class/dmi/id/product_uuid: permission denied: run as root or give CAP_DAC_READ_SEARCH")
    assert found(findings, "memory", "dimms").outcome is Availability.UNAVAILABLE
    log = found(findings, "readings", "kernelLog")
    assert log.reason == "/dev/kmsg: permission denied: run as root or give CAP_SYSLOG"


def test_the_log_that_an_operator_names_is_looked_at(tree: Tree) -> None:
    assert found(examine(tree.source, kernel_log="none"), "readings", "kernelLog").reason == (
        "turned off by --kernel-log none"
    )
    tree.facts[Fact.READS, "/var/log/kern.log"] = True
    named = found(examine(tree.source, kernel_log="/var/log/kern.log"), "readings", "kernelLog")
    assert (named.outcome, named.value) == (Availability.KNOWN, "/var/log/kern.log can be read")


def test_known_facts_show_their_value(tree: Tree) -> None:
    findings = examine(tree.source)
    assert found(findings, "system", "vendor").value == "Example Corp."
    assert found(findings, "memory", "totalBytes").value == "251.5 GiB"
    assert found(findings, "memory", "dimms.0").value.startswith("locator=A1 sizeBytes=64.0 GiB type=DDR5")
    assert found(findings, "os", "kvmAvailable").value == "no"
    assert found(findings, "os", "imex") == Finding("os", "imex", Availability.KNOWN, "", "none")
    assert found(findings, "readings", "pressure.cpu").value == "1.25 %"
    assert found(findings, "readings", "pressure.io").outcome is Availability.UNSUPPORTED


def test_not_asked_is_told_from_none(tree: Tree) -> None:
    assert found(examine(tree.source), "os", "engines").outcome is Availability.UNKNOWN
    asked = examine(tree.source, HostOptions(engine_dirs=("/opt/venv",)))
    assert found(asked, "os", "engines") == Finding("os", "engines", Availability.KNOWN, "", "none")


def test_gpus_are_examined_when_they_are_given(tree: Tree) -> None:
    gpus = GpusSection(
        enumeration=Enumeration.COMPLETE,
        driver_version="580.105.08",
        gpus=(Gpu(uuid="GPU-11111111-0000-0000-0000-000000000001", name="NVIDIA H100 80GB HBM3"),),
        unavailable={"gpus.0.serial": Availability.UNSUPPORTED},
    )
    findings = examine(tree.source, gpus=gpus)
    assert {finding.section for finding in findings} == {*SECTION_NAMES, "readings"}
    gpu = found(findings, "gpus", "gpus.0")
    assert gpu.value == "uuid=GPU-11111111-0000-0000-0000-000000000001 name=NVIDIA H100 80GB HBM3"
    assert findings[findings.index(gpu) + 1].fact == "gpus.0.serial"
    assert found(findings, "gpus", "cudaDriverVersion").outcome is Availability.UNKNOWN


def test_the_table_shows_every_fact_and_counts_the_outcomes(tree: Tree) -> None:
    tree.write("/sys/class/dmi/id/product_name", "Node [red]9000[/red]\n")
    findings = examine(tree.source)
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render(findings))
    shown = console.export_text()
    assert all(finding.fact in shown for finding in findings)
    assert "Node [red]9000[/red]" in shown
    assert "known" in shown.rsplit("┘", 1)[1]
