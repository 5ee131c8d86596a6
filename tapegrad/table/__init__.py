"""The table of operations: one record for each, in families.

Records refer to each other by name, so all of them are loaded together.
"""

from . import (
    activation as activation,
)
from . import (
    attention as attention,
)
from . import (
    complex_and_bits as complex_and_bits,
)
from . import (
    control as control,
)
from . import (
    conv as conv,
)
from . import (
    curve as curve,
)
from . import (
    decompose as decompose,
)
from . import (
    elementwise as elementwise,
)
from . import (
    embed as embed,
)
from . import (
    fft as fft,
)
from . import (
    index as index,
)
from . import (
    linalg as linalg,
)
from . import (
    lookup as lookup,
)
from . import (
    loss as loss,
)
from . import (
    matrix as matrix,
)
from . import (
    normalize as normalize,
)
from . import (
    pool as pool,
)
from . import (
    recurrent as recurrent,
)
from . import (
    reduce as reduce,
)
from . import (
    resample as resample,
)
from . import (
    sampling as sampling,
)
from . import (
    scatter as scatter,
)
from . import (
    shape as shape,
)
from . import (
    signal as signal,
)
from . import (
    sort as sort,
)
from . import (
    special as special,
)
from . import (
    spectrum as spectrum,
)
