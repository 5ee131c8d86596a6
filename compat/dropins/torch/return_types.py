"""torch.return_types: the named tuples that functions give."""

from tapegrad.functions.results import FIELDS as _FIELDS
from tapegrad.functions.results import type_of as _type_of

globals().update({name: _type_of(name) for name in _FIELDS})
