"""The kernels: their decisions, how they are compiled, and that they stay within their arrays."""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from cachelaw.fast import compiled, kernels
from cachelaw.reference import arc

HERE = Path(__file__).parent


def targets(capacity: int) -> list[float]:
    """Return targets that a cache may have: all halves, thirds and sevenths, and neighbours."""
    found = {float(part) / whole for whole in (1, 2, 3, 7) for part in range(whole * capacity + 1)}
    found |= {min(value + 1e-9, float(capacity)) for value in found}
    return sorted(found)


@pytest.mark.parametrize("capacity", [1, 2, 3, 5])
def test_a_ghost_hit_moves_the_target_as_the_core_does(capacity: int) -> None:
    """Every target above, and every pair of ghost lists up to the capacity; equal to the bit."""
    checked = 0
    for target, b1, b2 in product(targets(capacity), range(capacity + 1), range(capacity + 1)):
        ghosts1 = tuple(range(b1))
        ghosts2 = tuple(range(100, 100 + b2))
        state = arc.ArcState(capacity, target, (), (), ghosts1, ghosts2)
        if b1:
            after = arc.store_miss(state, (ghosts1[0],)).target
            assert kernels.raised(target, b1, b2, capacity) == after
            checked += 1
        if b2:
            after = arc.store_miss(state, (ghosts2[0],)).target
            assert kernels.lowered(target, b2, b1) == after
            checked += 1
    assert checked == 2 * len(targets(capacity)) * capacity * (capacity + 1)


@pytest.mark.parametrize("falls_back", [True, False])
@pytest.mark.parametrize("capacity", [1, 2, 4])
def test_the_list_that_gives_is_that_of_the_core(capacity: int, falls_back: bool) -> None:
    """Every target above, every number of busy and of idle chunks in T1 and T2."""
    seen = set()
    sizes = range(capacity + 1)
    for target, busy, idle1, idle2 in product(targets(capacity), sizes, sizes, sizes):
        t1 = tuple(range(busy + idle1))
        t2 = tuple(range(100, 100 + idle2))
        state = arc.ArcState(capacity, target, t1, t2)
        counts = {key: 1 if key < busy else 0 for key in (*t1, *t2)}
        _, victims = arc.evict(state, 1, (), counts.__getitem__, falls_back_to_t1=falls_back)
        expected = 0 if victims is None else kernels.T1 if victims[0] < 100 else kernels.T2
        given = kernels.gives(len(t1), target, idle1 > 0, idle2 > 0, falls_back)
        assert given == expected
        seen.add(given)
    assert seen == {0, kernels.T1, kernels.T2}


def test_nothing_is_compiled_after_the_construction() -> None:
    """A first call must not stall a serving thread."""
    from cachelaw.fast import ARC, LRU
    from cachelaw.reference import ChunkStatus, ReqContext

    made: list[Any] = [LRU(8), ARC(8)]
    functions = [value for value in vars(kernels).values() if hasattr(value, "signatures")]
    before = [compiled.signatures(function) for function in functions]
    assert sum(before) >= 15  # what policies call; what these call is part of them
    rng = random.Random(1)
    for policy in made:
        context = ReqContext("r")
        for step in range(2_000):
            key: Any = rng.randbytes(rng.choice((3, 36, 50)))
            if step % 3:
                context.set_offload_key_position(key, step)
            policy.touch([key, b"other"], context)
            policy.on_store_miss([key], context)
            if len(policy._chunks) == 8:
                policy.evict(rng.randint(1, 4), {b"other"})
            if len(policy._chunks) < 8:
                chunk = ChunkStatus(step)
                policy.insert(key, chunk, context)
                chunk.ref_cnt = rng.choice((0, 0, 0, 1))
                policy.mark_evictable(key)
            policy.on_request_access([key], context)
            policy.on_request_finished([[key]], {key}, set(), context)
        policy.clear()
    assert [compiled.signatures(function) for function in functions] == before


def test_an_edit_in_another_file_is_noticed(tmp_path: Path) -> None:
    """numba itself looks only at the file of the function that is called."""
    for name in ("compiled.py",):
        source = (Path(compiled.__file__).parent / name).read_text()
        (tmp_path / name).write_text(source)
    (tmp_path / "callee.py").write_text(
        "from compiled import kernel\n\n@kernel\ndef answer(x):\n    return x + 1\n"
    )
    (tmp_path / "caller.py").write_text(
        "from compiled import kernel\nfrom callee import answer\n\n"
        "@kernel\ndef twice(x):\n    return 2 * answer(x)\n\nprint(twice(10))\n"
    )

    def run() -> str:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "caller.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run() == "22\n"
    kept = sorted(path.name for path in (tmp_path / "cache").rglob("*.nbc"))
    assert any(name.startswith("caller.twice") for name in kept)
    # The caller stays as it is, and so does the size of the callee.
    callee = (tmp_path / "callee.py").read_text()
    (tmp_path / "callee.py").write_text(callee.replace("x + 1", "x + 5"))
    assert run() == "30\n"


def test_kernels_stay_within_their_arrays() -> None:
    """The comparison with the reference once more, with every index checked."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            str(HERE / "test_against_reference.py"),
            "-k",
            "reference or grows",
        ],
        cwd=HERE.parents[2],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


@pytest.mark.parametrize("missing", ["numba", "torch"])
def test_what_is_not_installed_is_named_with_the_extra(missing: str) -> None:
    program = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {missing!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "import cachelaw.fast\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: cachelaw.fast needs {missing}, not installed here: "
        "pip install 'cachelaw[fast]'"
    )


def test_the_extra_is_checked_for_by_name() -> None:
    from cachelaw.fast import extra

    assert all(importlib.util.find_spec(name) for name in extra.NEEDED)
