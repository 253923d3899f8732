"""Names of types that the zoo uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from cachelaw.reference.keys import OffloadKey

Key = OffloadKey
Keys = Iterable[OffloadKey]
Groups = Sequence[Sequence[OffloadKey]]
KeySet = AbstractSet[OffloadKey]
