"""Profiles of Hypothesis, and where tests find each other.

`HYPOTHESIS_PROFILE=deep pytest ...` searches longer, and elsewhere each time.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# The tests are no part of the distribution, so that `tests` is on no path of its own.
if (ROOT := str(Path(__file__).parents[1])) not in sys.path:
    sys.path.insert(0, ROOT)

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("deep", derandomize=False, deadline=None, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True, scope="session")
def _own_store(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the counterexamples that tests find out of the developer's store."""
    os.environ["CACHELAW_STATE"] = str(tmp_path_factory.mktemp("state"))
