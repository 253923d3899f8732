"""`python -m cachelaw.conformance` is `cachelaw`."""

import sys

from cachelaw.conformance.cli import main

sys.exit(main())
