"""Parsing the XML of `nvidia-smi -q -x` from a source that is not trusted.

Nothing is expanded or fetched: a document that declares or uses entities is refused, the DTD it names is not read,
and size, depth and number of elements are bounded.
"""

from typing import Final
from xml.etree.ElementTree import Element, TreeBuilder  # the builder only: parsing is expat's, guarded below
from xml.parsers import expat

from domain.errors import InvalidInput

SMI_BYTES_MAX: Final = 16 * 1024 * 1024
ELEMENTS_MAX: Final = 400_000  # sixteen GPUs with every supported clock stay under 20,000
DEPTH_MAX: Final = 32  # real logs reach 7
ROOT: Final = "nvidia_smi_log"
_EXPECTED: Final = "the output of `nvidia-smi -q -x` is expected"


def parse_log(content: bytes) -> Element:
    """Return the root element of a log; raises InvalidInput with the place and what would be right."""
    if len(content) > SMI_BYTES_MAX:
        raise InvalidInput(f"nvidia-smi log: {len(content)} bytes; at most {SMI_BYTES_MAX} are read")
    guard = _Guard()
    try:
        guard.parser.Parse(content, True)  # noqa: FBT003 - expat takes no keywords
        root = guard.builder.close()
    except expat.ExpatError as error:
        place = f"line {error.lineno}, column {error.offset}"
        problem = expat.ErrorString(error.code)
        raise InvalidInput(f"nvidia-smi log at {place}: not XML ({problem}); {_EXPECTED}") from error
    except (LookupError, ValueError) as error:
        raise InvalidInput(f"nvidia-smi log: not XML in a known encoding ({error}); {_EXPECTED}") from error
    if root.tag != ROOT:
        raise InvalidInput(f"nvidia-smi log at <{root.tag[:40]}>: not the element <{ROOT}>; {_EXPECTED}")
    return root


class _Guard:
    """An expat parser that builds a tree and refuses what no log holds."""

    def __init__(self) -> None:
        self.builder = TreeBuilder()
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self.builder.data
        self.parser.EntityDeclHandler = self._refuse_entity
        self.parser.UnparsedEntityDeclHandler = self._refuse_entity
        self.parser.ExternalEntityRefHandler = self._refuse_entity
        self.parser.SkippedEntityHandler = self._refuse_entity
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self._depth = 0
        self._elements = 0

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._depth > DEPTH_MAX:
            raise self._refusal(f"elements nested deeper than {DEPTH_MAX}")
        if self._elements > ELEMENTS_MAX:
            raise self._refusal(f"more than {ELEMENTS_MAX} elements")
        self.builder.start(tag, attributes)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        self.builder.end(tag)

    def _refuse_entity(self, *_: object) -> int:
        raise self._refusal("an entity is declared or used; a log has none, and none is expanded")

    def _refusal(self, problem: str) -> InvalidInput:
        return InvalidInput(f"nvidia-smi log at line {self.parser.CurrentLineNumber}: {problem}; {_EXPECTED}")
