"""GPU names: the traps of names inside names, memory, and what is no whole board."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.documents.gpus import Gpu
from domain.gpu_models import GpuProduct, gpu_models
from domain.gpu_names import NAME_LENGTH_MAX, OTHER, GpuKind, canonicalize, fits, name_of, normalize

TABLE = gpu_models()
PRODUCTS = st.sampled_from(TABLE.products)
NAMES = st.sampled_from([name for each in TABLE.products for name in each.names])
SEPARATORS = st.text(st.sampled_from(" -_/.,()+™é\t"), min_size=1, max_size=3)
CASES: list[Callable[[str], str]] = [str.upper, str.lower, str.title, str]
VRAM = st.none() | st.integers(0, 400_000)
ANY_NAME = (
    NAMES
    | st.text(max_size=150)
    | st.builds("{} MIG {}g.{}gb".format, NAMES, st.integers(1, 7), st.integers(5, 200))
    | st.builds("{}-{}C".format, st.sampled_from([each.stem for each in TABLE.vgpu_stems]), st.integers(1, 180))
    | st.builds("{} ...".format, NAMES)
)


@st.composite
def spelled(draw: st.DrawFn, name: str) -> str:
    """Draw another way to write a name: letters' case, separators, with or without the maker's name."""
    words = re.findall(r"[A-Za-z0-9]+", name)
    if words[0] == "NVIDIA":
        words = words[1:]
    if draw(st.booleans()):
        words = ["NVIDIA", *words]
    cased = [draw(st.sampled_from(CASES))(word) for word in words]
    return "".join(f"{draw(SEPARATORS)}{word}" for word in cased) + draw(st.sampled_from(["", " ", "-", ")"]))


def product(name: str, vram_mib: int | None = None) -> str:
    return normalize(name, vram_mib).product


@pytest.mark.parametrize("row", TABLE.products, ids=lambda row: row.product)
def test_a_product_normalizes_to_itself_whatever_the_memory(row: GpuProduct) -> None:
    for vram_mib in (None, 0, 40_960, 400_000):
        found = normalize(row.product, vram_mib)
        assert (found.product, found.model) == (row.product, row.model)
        assert found.known


@pytest.mark.parametrize("row", TABLE.products, ids=lambda row: row.product)
def test_each_name_with_the_products_memory_leads_to_it_or_to_its_family(row: GpuProduct) -> None:
    for name in row.names:
        memory = row.memory_gb
        found = normalize(name, None if memory is None else memory * 1024)
        assert found.model == row.model
        sharing = [each for each in TABLE.products if name in each.names and each.memory_gb == memory]
        assert found.product == (row.product if len(sharing) == 1 else canonicalize(name))


@given(ANY_NAME, VRAM)
def test_normalizing_again_changes_neither_product_nor_family(name: str, vram_mib: int | None) -> None:
    once = normalize(name, vram_mib)
    again = normalize(once.product, vram_mib)
    assert (again.product, again.model, again.part_of) == (once.product, once.model, once.part_of)


@given(st.data(), NAMES | PRODUCTS.map(lambda row: row.product), VRAM)
def test_case_and_punctuation_change_nothing(data: st.DataObject, name: str, vram_mib: int | None) -> None:
    assert normalize(data.draw(spelled(name)), vram_mib) == normalize(name, vram_mib)


@given(st.text())
def test_a_canonical_name_is_short_plain_and_stays_as_it_is(name: str) -> None:
    canonical = canonicalize(name)
    assert re.fullmatch(r"([A-Z0-9]+(-[A-Z0-9]+)*)?", canonical)
    assert len(canonical) <= NAME_LENGTH_MAX
    assert canonicalize(canonical) == canonical


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("NVIDIA H100 80GB HBM3", "H100-80GB-HBM3"),
        ("Tesla T4", "TESLA-T4"),
        (" nvidia  NVIDIA-A10G ", "A10G"),
        ("NVIDIA TITAN X (Pascal)", "TITAN-X-PASCAL"),
        ("NVIDIA", "NVIDIA"),
        ("…", ""),
    ],
)
def test_canonical_names(name: str, canonical: str) -> None:
    assert canonicalize(name) == canonical


@pytest.mark.parametrize(
    ("holding", "held"),
    [
        (("NVIDIA GH200 480GB", "GH200"), ("NVIDIA H200", "H200")),
        (("NVIDIA L40S", "L40S"), ("NVIDIA L40", "L40")),
        (("NVIDIA L40", "L40"), ("NVIDIA L4", "L4")),
        (("NVIDIA A100-SXM4-40GB", "A100"), ("NVIDIA A10", "A10")),
        (("NVIDIA GB300", "GB300"), ("NVIDIA B300 SXM6 AC", "B300")),
        (("NVIDIA GB200", "GB200"), ("NVIDIA B200", "B200")),
        (("NVIDIA H200", "H200"), ("NVIDIA H20", "H20")),
        (("NVIDIA RTX A2000", "RTX-A2000"), ("NVIDIA A2", "A2")),
        (("NVIDIA A10G", "A10G"), ("NVIDIA A10", "A10")),
        (("NVIDIA L20", "L20"), ("NVIDIA L2", "L2")),
        (("NVIDIA GeForce RTX 4090 D", "RTX-4090-D"), ("NVIDIA GeForce RTX 4090", "RTX-4090")),
        (("NVIDIA GeForce RTX 5090 D v2", "RTX-5090-D-V2"), ("NVIDIA GeForce RTX 5090 D", "RTX-5090-D")),
        (("Quadro RTX 6000", "QUADRO-RTX-6000"), ("NVIDIA RTX 6000 Ada Generation", "RTX-6000-ADA")),
        (("NVIDIA RTX A6000", "RTX-A6000"), ("NVIDIA RTX 6000D", "RTX-6000D")),
    ],
)
def test_a_name_inside_another_is_another_family(holding: tuple[str, str], held: tuple[str, str]) -> None:
    for name, model in (holding, held):
        assert normalize(name, None).model == model


@pytest.mark.parametrize(
    ("name", "vram_mib", "expected"),
    [
        ("NVIDIA A100-SXM4", 40_960, "A100-SXM4-40GB"),
        ("NVIDIA A100-SXM4", 40_536, "A100-SXM4-40GB"),
        ("NVIDIA A100-SXM4", 81_251, "A100-SXM4-80GB"),
        ("NVIDIA GH200", 97_871, "GH200-SUPERCHIP-96GB"),
        ("NVIDIA GH200", 146_831, "GH200-SUPERCHIP-144GB"),
        ("NVIDIA GB300", 284_208, "GB300-SUPERCHIP-278GB"),
        ("NVIDIA GB300", 256_703, "GB300-SUPERCHIP-252GB"),
        ("NVIDIA GeForce RTX 3080", 10_240, "RTX-3080-PCIE-10GB"),
        ("NVIDIA GeForce RTX 3080", 12_288, "RTX-3080-PCIE-12GB"),
    ],
)
def test_memory_decides_between_products_of_one_name(name: str, vram_mib: int, expected: str) -> None:
    assert product(name, vram_mib) == expected


@pytest.mark.parametrize("vram_mib", [None, 0, 120_000])
def test_a_shared_name_whose_memory_decides_nothing_stays_a_name_of_its_family(vram_mib: int | None) -> None:
    found = normalize("NVIDIA GH200", vram_mib)
    assert (found.product, found.model, found.known) == ("GH200", "GH200", True)


def test_the_band_is_8_percent_down_and_1_percent_up() -> None:
    (row,) = [each for each in TABLE.products if each.product == "H100-SXM5-80GB"]
    nominal = 80 * 1024
    low, high = 75_367, 82_739
    assert low - 1 < nominal * 0.92 <= low
    assert high <= nominal * 1.01 < high + 1
    assert [fits(row, vram_mib) for vram_mib in (low - 1, low, high, high + 1)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("name", "vram_mib", "expected"),
    [
        ("Tesla T4", 15_079, "T4-PCIE-16GB"),
        ("NVIDIA A40", 49_140, "A40-PCIE-48GB"),
        ("NVIDIA A40", 46_068, "A40-PCIE-48GB"),
        ("NVIDIA H200", 143_771, "H200-SXM5-141GB"),
        ("NVIDIA H20-3e", 143_771, "H20-SXM5-141GB"),
        ("NVIDIA A100-SXM-64GB", 64_945, "A100-SXM4-64GB"),
        ("A100-SXM4-40GB", 40_536, "A100-SXM4-40GB"),
        ("Tesla K80", 11_439, "K80-PCIE-12GB"),
        ("Tesla M60", 7_618, "M60-PCIE-8GB"),
    ],
)
def test_reported_memory_is_less_than_nominal(name: str, vram_mib: int, expected: str) -> None:
    assert product(name, vram_mib) == expected


def test_memory_that_the_product_cannot_have_leaves_the_family_only() -> None:
    # An RTX 4090 with 48 GB exists; H100 is the driver's name of the board with 94 GB.
    assert product("NVIDIA GeForce RTX 4090", 49_140) == "GEFORCE-RTX-4090"
    assert normalize("NVIDIA GeForce RTX 4090", 49_140).model == "RTX-4090"
    assert product("NVIDIA H100", 95_830) == "H100-SXM5-94GB"
    assert product("NVIDIA H100", 81_559) == "H100"


def test_a_name_that_tells_its_memory_is_believed_when_only_a_part_of_it_was_read() -> None:
    assert product("NVIDIA H100 80GB HBM3", 40_448) == "H100-SXM5-80GB"
    assert product("NVIDIA A100-SXM4-80GB", 19_968) == "A100-SXM4-80GB"


@pytest.mark.parametrize(
    ("name", "part_of"),
    [
        ("GRID A100X-40C", "A100"),
        ("GRID A100DX-8C", "A100"),
        ("NVIDIA A100-3-20C", "A100"),
        ("NVIDIA H100XM-80C", "H100"),
        ("NVIDIA H100-1-10CME", "H100"),
        ("NVIDIA H20X-141C", "H20"),
        ("NVIDIA A10-24", "A10"),
        ("NVIDIA L4-24Q", "L4"),
        ("NVIDIA L40S-8", "L40S"),
        ("NVIDIA B300X-269C", "B300"),
        ("NVIDIA GH200L-144C", "GH200"),
        ("NVIDIA RTXA6000-48Q", "RTX-A6000"),
        ("NVIDIA RTX6000-Ada-48Q", "RTX-6000-ADA"),
        ("NVIDIA RTX Pro 6000 Blackwell DC-4-24Q", "RTX-PRO-6000"),
        ("NVIDIA RTX 6000D-84", "RTX-6000D"),
        ("GRID T4-16Q", "T4"),
        ("GRID T4-2B4", "T4"),
        ("GRID RTX T4-8", "T4"),
        ("GeForce RTX T10-8", None),
        ("GRID P40-24Q", None),
    ],
)
def test_the_name_of_a_virtual_gpu_is_no_boards(name: str, part_of: str | None) -> None:
    found = normalize(name, 24_576)
    assert (found.kind, found.part_of) == (GpuKind.VGPU, part_of)
    assert (found.product, found.model) == (canonicalize(name), OTHER)


@pytest.mark.parametrize(
    ("name", "part_of"),
    [
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "H100"),
        ("NVIDIA H200 MIG 1c.3g.71gb", "H200"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb+gfx", "RTX-PRO-6000"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb+me", "A100"),
        ("NVIDIA GB300 MIG 1g.35gb+me.all", "GB300"),
        ("NVIDIA B300 SXM6 AC MIG 7g.269gb-me", "B300"),
        ("H100-SXM5-80GB MIG 3g.40gb", "H100"),
        ("MIG 1g.10gb", None),
        ("NVIDIA Something MIG 1g.10gb", None),
    ],
)
def test_the_name_of_a_mig_device_is_no_boards(name: str, part_of: str | None) -> None:
    found = normalize(name, 9_984)
    assert (found.kind, found.part_of, found.model) == (GpuKind.MIG, part_of, OTHER)
    assert found.product == canonicalize(name)
    assert found.known == (part_of is not None)


@pytest.mark.parametrize("name", ["Graphics Device", "NVIDIA Graphics Device", "[N/A]", "ERR!", "[Unknown Error]"])
def test_a_text_that_names_nothing_is_no_model(name: str) -> None:
    found = normalize(name, 5_912)
    assert (found.kind, found.model, found.known) == (GpuKind.PLACEHOLDER, OTHER, False)


@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 4090 ...", "NVIDIA RTX 4000 Ada Gene...", "NVIDIA A100-SXM4…"])
def test_a_name_cut_short_is_not_the_name_of_its_beginning(name: str) -> None:
    found = normalize(name, 24_564)
    assert (found.kind, found.model, found.known) == (GpuKind.CUT, OTHER, False)
    assert normalize(found.product, 24_564).model == OTHER


@pytest.mark.parametrize(
    ("name", "model"),
    [("NVIDIA GB10", "GB10"), ("Orin (nvgpu)", "ORIN"), ("NVIDIA Tegra Orin (nvgpu)", "ORIN"), ("NVIDIA Thor", "THOR")],
)
def test_integrated_gpus_are_known_without_memory_of_their_own(name: str, model: str) -> None:
    found = normalize(name, None)
    assert (found.kind, found.model, found.known) == (GpuKind.INTEGRATED, model, True)
    assert normalize(name, 120_000) == found


def test_a_display_adapter_is_no_gpu_to_compute_with() -> None:
    assert normalize("NVIDIA DGX Display", 4_096).kind is GpuKind.DISPLAY


def test_a_name_that_the_table_lacks_keeps_its_canonical_form_and_is_of_no_family() -> None:
    found = normalize("NVIDIA H900 512GB", 524_288)
    assert (found.product, found.model, found.kind, found.known) == ("H900-512GB", OTHER, GpuKind.UNKNOWN, False)
    assert found.table_version == 3


def test_an_earlier_version_knows_only_its_own_products() -> None:
    assert normalize("Tesla T4", 15_360, version=2).model == OTHER
    assert normalize("NVIDIA GH200 480GB", None, version=2).product == "GH200-SUPERCHIP-96GB"
    assert normalize("NVIDIA GH200 480GB", None, version=2).table_version == 2


@pytest.mark.parametrize("name", [None, "", "N/A", "[Unknown Error]", "GPU is lost", "???"])
def test_a_gpu_without_a_name_is_not_named(name: str | None) -> None:
    assert name_of(Gpu(name=name, vram_mib=81_559)) is None


def test_in_a_guest_a_virtual_gpu_may_be_called_as_its_board() -> None:
    found = name_of(Gpu(name="NVIDIA GeForce RTX 2080", vram_mib=8_192, virtualization="vgpu"))
    assert found is not None
    assert (found.product, found.model) == ("GEFORCE-RTX-2080", OTHER)
    assert (found.kind, found.part_of) == (GpuKind.VGPU, "RTX-2080")
    whole = name_of(Gpu(name="NVIDIA GeForce RTX 2080", vram_mib=8_192, virtualization="pass_through"))
    assert whole is not None
    assert (whole.product, whole.kind) == ("RTX-2080-PCIE-8GB", GpuKind.BOARD)
