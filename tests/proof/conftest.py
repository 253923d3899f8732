"""Where the proofs are found.

`proofs/` and `tests/` are no part of the distribution, so that neither is on the path once cachelaw
is installed. A bare `pytest` does not put the folder that it runs in there either.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
