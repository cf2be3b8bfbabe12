"""Which of the listed GPUs are some to compute with: a display adapter beside them is none (rule 16)."""

from typing import Final

from msgspec import structs

from domain.availability import Availability
from domain.documents.document import Section
from domain.documents.gpus import GpusSection
from domain.gpu_names import is_display_adapter

_LIST: Final = "gpus"


def without_display_adapters(section: Section) -> Section:
    """Return the section as it is planned and compared; its bytes and what is shown of it stay as they came."""
    if not isinstance(section, GpusSection):
        return section
    kept = [place for place, gpu in enumerate(section.gpus) if not is_display_adapter(gpu.name)]
    if len(kept) == len(section.gpus):
        return section
    places = {str(old): str(new) for new, old in enumerate(kept)}
    unavailable: dict[str, Availability] = {}
    for path, why in section.unavailable.items():
        head, _, rest = path.partition(".")
        place, dot, fact = rest.partition(".")
        if head != _LIST or not rest:
            unavailable[path] = why
        elif place in places:
            unavailable[f"{_LIST}.{places[place]}{dot}{fact}"] = why
    return structs.replace(section, gpus=tuple(section.gpus[place] for place in kept), unavailable=unavailable)
