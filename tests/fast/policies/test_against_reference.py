"""The fast policies answer as the reference does, call by call, whatever the keys."""

from __future__ import annotations

import copy
import importlib
import pickle
import random
from collections.abc import Iterator
from typing import Any

import pytest

from cachelaw.fast import kernels, table
from cachelaw.reference import OffloadKey, ReqContext

EDITIONS = ("v024", "v031", "v033")
POLICIES = [(edition, name) for edition in EDITIONS for name in ("LRU", "ARC")]
each_policy = pytest.mark.parametrize(("edition", "name"), POLICIES)

LENGTHS = {
    "as vLLM makes them": (36,),
    "short": (1, 2, 3),
    "up to a row": (0, 7, 8, 9, 32, 39, 40),
    "longer than a row": (40, 41, 48, 100, 1000),
    "of one length, longer than a row": (65,),
}


class Pair:
    """A fast policy and the reference, driven alike; chunks and contexts are each one's own."""

    def __init__(self, edition: str, name: str, capacity: int) -> None:
        self.edition, self.capacity = edition, capacity
        self.sides = [
            getattr(importlib.import_module(f"cachelaw.{package}.{edition}"), name)(capacity)
            for package in ("fast", "reference")
        ]
        self.status: Any = importlib.import_module(f"cachelaw.reference.{edition}").ChunkStatus
        self.chunks: list[dict[bytes, Any]] = [{}, {}]
        self.contexts: list[dict[str, ReqContext]] = [{}, {}]
        self.answers = 0

    def context(self, side: int, request: str, positions: dict[bytes, int]) -> ReqContext:
        context = self.contexts[side].setdefault(request, ReqContext(request))
        for key, position in positions.items():
            context.set_offload_key_position(OffloadKey(key), position)
        return context

    def call(self, method: str, *arguments: Any, request: str = "", **positions: Any) -> Any:
        """Make a call on both; compare what they answer."""
        answers = []
        for side, policy in enumerate(self.sides):
            given = [fresh(argument) for argument in arguments]
            if request and (method != "touch" or self.edition != "v024"):
                given.append(self.context(side, request, positions.get("at", {})))
            answer = getattr(policy, method)(*given)
            if method == "evict" and answer is not None:
                assert all(chunk is self.chunks[side].pop(key) for key, chunk in answer)
                answer = [key for key, _ in answer]
            answers.append(answer)
        assert answers[0] == answers[1], (method, arguments)
        self.answers += method == "evict"
        return answers[0]

    def insert(self, key: bytes, request: str, at: dict[bytes, int], ref_cnt: int = -1) -> None:
        for side, policy in enumerate(self.sides):
            chunk = self.chunks[side][key] = self.status(len(self.chunks[side]))
            chunk.ref_cnt = ref_cnt
            context = (self.context(side, request, at),) if self.edition == "v033" else ()
            policy.insert(fresh(key), chunk, *context)

    def count(self, key: bytes, change: int) -> None:
        """Change a ref count, with the mark that a host makes."""
        old = self.chunks[0][key].ref_cnt
        if old == 0:
            self.call("mark_non_evictable", key)
        for chunks in self.chunks:
            chunks[key].ref_cnt += change
        if old + change == 0:
            self.call("mark_evictable", key)


def fresh(argument: Any) -> Any:
    """Return keys as new objects, as hosts pass them."""
    if isinstance(argument, bytes):
        return bytes(bytearray(argument))
    if isinstance(argument, list | tuple | set):
        return type(argument)(fresh(each) for each in argument)
    return argument


def some_keys(rng: random.Random, lengths: tuple[int, ...], number: int) -> list[bytes]:
    """Return different keys, many of which begin or end alike."""
    found: set[bytes] = set()
    while len(found) < number:
        length = rng.choice(lengths)
        body = bytearray(length)
        for _ in range(min(length, 3)):
            body[rng.choice((0, length - 1, rng.randrange(length)))] = rng.randrange(256)
        found.add(bytes(body))
        if length == 0 and len(lengths) == 1:
            break
    return sorted(found)


def drive(pair: Pair, rng: random.Random, keys: list[bytes], steps: int) -> Iterator[None]:
    """Make valid calls at random, some of them with many keys."""
    requests: dict[str, dict[bytes, int]] = {}
    for _ in range(steps):
        if not requests or rng.random() < 0.05:
            name = f"r{rng.randrange(10**6)}"
            known = rng.random()
            requests[name] = {k: rng.randrange(6) for k in keys if rng.random() < known}
        request = rng.choice(list(requests))
        at = requests[request]
        chunks = pair.chunks[0]
        batch = rng.choices(keys, k=rng.choice((0, 1, 1, 2, 5, 40)))
        match rng.randrange(12):
            case 0 | 1:
                for key in batch:
                    if key not in chunks and len(chunks) < pair.capacity:
                        pair.insert(key, request, at, rng.choice((-1, -1, -1, 0)))
            case 2 | 3:
                for key in sorted(chunks):
                    if rng.random() < 0.5:
                        old = chunks[key].ref_cnt
                        pair.count(key, 1 if old < 0 else rng.choice((1, -1)) if old else 1)
            case 4:
                pending = [key for key in sorted(chunks) if chunks[key].ref_cnt < 0]
                for key in pending[:2]:
                    pair.call("remove", key)
                    for side in pair.chunks:
                        del side[key]
            case 5 | 6:
                pair.call("touch", batch, request=request, at=at)
            case 7:
                if pair.edition != "v024":
                    pair.call("on_store_miss", batch, request=request, at=at)
            case 8:
                if pair.edition == "v033":
                    pair.call("on_request_access", batch, request=request, at=at)
            case 9:
                if pair.edition != "v024":
                    half = len(batch) // 2
                    inserted = {key for key in batch if rng.random() < 0.5}
                    reused = {key for key in batch if rng.random() < 0.6}
                    pair.call(
                        "on_request_finished",
                        (batch[:half], batch[half:]),
                        inserted,
                        reused,
                        request=request,
                        at=at,
                    )
                    if rng.random() < 0.3:
                        del requests[request]
            case 10:
                protected = set(rng.sample(keys, rng.randint(0, len(keys) // 2)))
                pair.call("evict", rng.randint(0, 4), rng.choice((set(), set(batch), protected)))
            case _:
                pair.call("evict", rng.randint(1, max(1, len(chunks))), set())
                if rng.random() < 0.02:
                    pair.call("clear")
                    for side in pair.chunks:
                        side.clear()
        for key in batch:
            found = [policy.get(fresh(key)) for policy in pair.sides]
            assert found[0] is pair.chunks[0].get(key)
            assert found[1] is pair.chunks[1].get(key)
        if hasattr(pair.sides[0], "target_t1_size") and rng.random() < 0.2:
            assert pair.sides[0].target_t1_size == pair.sides[1].state.target
        yield


@each_policy
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=list(LENGTHS))
def test_answers_are_those_of_the_reference(
    edition: str, name: str, lengths: tuple[int, ...]
) -> None:
    answers = 0
    for seed in range(6):
        rng = random.Random(f"{edition} {name} {lengths} {seed}")
        capacity = rng.choice((1, 2, 3, 8, 24, 64))
        keys = some_keys(rng, lengths, 2 * capacity + 4)
        pair = Pair(edition, name, capacity)
        for _ in drive(pair, rng, keys, 400):
            pass
        answers += pair.answers
    assert answers > 200


def drive_singles(pair: Pair, rng: random.Random, keys: list[bytes], steps: int) -> int:
    """Evict chunks one by one, with little but inserts in between; return how many.

    What a policy looked up ahead holds for long then, and has to be given up at the right time.
    """
    requests: list[dict[bytes, int]] = [{}, {key: rng.randrange(9) for key in keys}]
    evicted = 0
    for step in range(steps):
        chunks = pair.chunks[0]
        at, request = rng.choice(requests), f"r{step // 60}"
        full = len(chunks) == pair.capacity
        protected = set(rng.sample(keys, rng.choice((0, 0, 1, len(keys) // 3))))
        if full and pair.call("evict", rng.choice((1, 1, 1, 1, 2)), protected) is not None:
            evicted += 1
        for key in rng.sample([key for key in keys if key not in chunks], 2):  # ghosts come back
            if len(chunks) < pair.capacity:
                pair.insert(key, request, at, rng.choice((-1, 0, 0)))
        busy = [key for key in sorted(chunks) if chunks[key].ref_cnt]
        for key in busy:
            if rng.random() < 0.4:
                pair.count(key, -1 if chunks[key].ref_cnt > 0 else 1)
        idle = [key for key in sorted(chunks) if not chunks[key].ref_cnt]
        if idle and rng.random() < 0.1:
            pair.count(rng.choice(idle), 1)
        match rng.randrange(60):
            case 0:
                pair.call("touch", rng.choices(keys, k=3), request=request, at=at)
            case 1 if pair.edition != "v024":
                pair.call("on_store_miss", rng.choices(keys, k=4), request=request, at=at)
            case 2 if pair.edition == "v033":
                pair.call("on_request_access", rng.choices(keys, k=3), request=request, at=at)
    return evicted


@each_policy
def test_single_evictions_are_those_of_the_reference(edition: str, name: str) -> None:
    evicted = 0
    for seed in range(40):
        rng = random.Random(f"singles {edition} {name} {seed}")
        capacity = rng.choice((3, 8, 24, 64))
        keys = some_keys(rng, (36,), 3 * capacity)
        evicted += drive_singles(Pair(edition, name, capacity), rng, keys, 400)
    assert evicted > 3_000


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_mark_is_not_taken_for_that_of_a_later_chunk(edition: str) -> None:
    """A chunk that was marked leaves, and its key is stored again before ARC looks at marks."""
    pair = Pair(edition, "ARC", 8)
    for key in (b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h"):
        pair.insert(key, "r", {}, ref_cnt=0)
    assert pair.call("evict", 1, set()) == [b"a"]
    pair.insert(b"i", "r", {})
    assert pair.call("evict", 1, set()) == [b"b"]
    pair.insert(b"j", "r", {})
    pair.count(b"c", 1)
    pair.count(b"c", -1)
    assert pair.call("evict", 1, set()) == [b"c"]
    pair.insert(b"c", "r", {})
    pair.call("touch", [b"c"], request="r")  # pending: no second use
    pair.call("touch", [b"i"], request="r")
    for key in (b"i", b"j", b"c"):
        pair.count(key, 1)
    left = [pair.call("evict", 1, set())[0] for _ in range(8)]
    assert left == [b"d", b"e", b"f", b"g", b"h", b"j", b"c", b"i"]


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("carried_out", ["by a full queue", "by a look at the target"])
def test_a_mark_that_was_carried_out_is_not_forgotten(edition: str, carried_out: str) -> None:
    """What was passed over when victims were looked up may leave before them once it is idle."""
    pair = Pair(edition, "ARC", 300)
    for number in range(300):
        pair.insert(f"{number:03}".encode(), "r", {}, ref_cnt=0)
    pair.count(b"000", 1)
    assert pair.call("evict", 30, set())[0] == b"001"
    pair.insert(b"first", "r", {}, ref_cnt=0)
    assert pair.call("evict", 1, set()) == [b"031"]
    pair.insert(b"second", "r", {}, ref_cnt=0)
    pair.count(b"000", -1)
    if carried_out == "by a full queue":
        fast: Any = pair.sides[0]
        fast._limit = len(fast._keys) + 1
        pair.insert(b"third", "r", {}, ref_cnt=0)
        assert not fast._keys
    else:
        assert pair.sides[0].target_t1_size == 0
    assert pair.call("evict", 1, set()) == [b"000"]


@pytest.mark.parametrize("edition", EDITIONS)
def test_what_is_stale_behind_a_busy_chunk_is_not_read_for_ever(edition: str) -> None:
    """Uses leave stale entries in the log of a list; a busy chunk at its front keeps them."""
    rng = random.Random(11)
    pair = Pair(edition, "ARC", 64)
    keys = some_keys(rng, (36,), 72)
    for key in keys[:64]:
        pair.insert(key, "r", {}, ref_cnt=0)
    pair.call("touch", keys[:64], request="r")  # all are in T2 now, the last key is the oldest
    for key in keys[60:64]:
        pair.count(key, 1)
    for round_ in range(8):
        for _ in range(8):
            pair.call("touch", rng.sample(keys[:60], 60), request="r")
        assert pair.call("evict", 1, {keys[0]})
        pair.insert(keys[64 + round_], "r", {}, ref_cnt=0)
        pair.call("touch", [keys[64 + round_]], request="r")
        fast: Any = pair.sides[0]
        first, end = (fast._header[at + kernels.T2] for at in (kernels.FIRSTS, kernels.ENDS))
        assert end - first < 256, "with what is stale there are up to 704"
    for key in keys[60:64]:
        pair.count(key, -1)
    left = [pair.call("evict", n, set()) for n in (3, 2, 50, 9)]
    assert left[0] == keys[63:60:-1]
    assert all(left)


@each_policy
@pytest.mark.parametrize("why", ["busy", "protected"])
def test_what_was_taken_out_comes_back(edition: str, name: str, why: str) -> None:
    """Many victims leave a block at a time. One that may not leave may be found late."""
    pair = Pair(edition, name, 600)
    keys = [f"{number:08}".encode() for number in range(600)]
    for key in keys:
        pair.insert(key, "r", {}, ref_cnt=0)
    if why == "busy":
        pair.count(keys[550], 1)
    kept = {keys[550]} if why == "protected" else set()
    assert pair.call("evict", 600, kept) is None
    assert pair.sides[0].get(keys[0]) is not None
    assert len(pair.call("evict", 580, kept)) == 580
    assert pair.call("evict", 20, kept) is None
    assert len(pair.call("evict", 19, kept)) == 19


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_ghost_keeps_no_key_object(edition: str) -> None:
    pair = Pair(edition, "ARC", 8)
    keys = some_keys(random.Random(3), (36,), 40)
    for key in keys[:8]:
        pair.insert(key, "r", {}, ref_cnt=0)
    for key in keys[8:]:
        pair.call("evict", 1, set())
        pair.insert(key, "r", {}, ref_cnt=0)
    fast: Any = pair.sides[0]
    fast.cachelaw_state()  # has the queue carried out
    assert {key for key in fast._names if key is not None} == set(keys[-8:])


@each_policy
def test_the_memory_grows_when_it_has_to(
    edition: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and long keys: more than it was made for, in the middle of everything."""
    monkeypatch.setattr(table, "PRESIZED", 1)
    monkeypatch.setattr(table, "LIMIT", 4)
    rng = random.Random(f"{edition} {name}")
    keys = some_keys(rng, (8, 36, 41, 200), 150)
    pair = Pair(edition, name, 64)
    # An LRU begins with fewer rows than it needs; ARC has room for its ghosts from the beginning.
    before = pair.sides[0].memory_bytes()
    for _ in drive(pair, rng, keys, 1_500):
        pass
    assert pair.sides[0].memory_bytes() > before
    assert pair.answers > 50


@each_policy
def test_a_copy_goes_its_own_way(edition: str, name: str) -> None:
    rng = random.Random(5)
    keys = some_keys(rng, (36,), 20)
    pair = Pair(edition, name, 8)
    for _ in drive(pair, rng, keys, 200):
        pass
    made = pair.sides[0]
    state = made.cachelaw_state()
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert other.cachelaw_state() == state
        other.clear()
        assert other.cachelaw_state() != state or not pair.chunks[0]
        assert all(other.get(key) is None for key in keys)
        assert made.cachelaw_state() == state


@each_policy
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_copy_goes_on_where_it_was_made(edition: str, name: str, copied: Any) -> None:
    """In the middle of the queue, and of what was looked up ahead."""
    rng = random.Random(7)
    pair = Pair(edition, name, 24)
    keys = some_keys(rng, (36,), 60)
    at = {key: place for place, key in enumerate(keys)}
    for key in keys[:24]:
        pair.insert(key, "r", at, ref_cnt=0)
    if (edition, name) == ("v024", "LRU"):
        pair.call("touch", keys[:24])
    for number in range(9):
        for key in keys[24 + 3 * number : 27 + 3 * number]:
            pair.call("evict", 1, set())
            pair.insert(key, "s", {}, ref_cnt=0)
        pair.sides[0], pair.chunks[0] = copied((pair.sides[0], pair.chunks[0]))
        pair.call("evict", 1, set())
        pair.insert(keys[51 + number], f"q{number}", at, ref_cnt=0)
    for _ in range(8):
        pair.call("touch", [keys[45]], request="t")
        pair.sides[0], pair.chunks[0] = copied((pair.sides[0], pair.chunks[0]))
        pair.call("evict", 2, {keys[40]})
    assert pair.answers == 44


@each_policy
def test_what_lost_its_mark_is_found_again(edition: str, name: str) -> None:
    """A host owes the marks. One that fails to make them must not lose chunks for good."""
    if (edition, name) == ("v024", "LRU"):
        pytest.skip("its order is the marks")
    policy: Any = getattr(importlib.import_module(f"cachelaw.fast.{edition}"), name)(4)
    status: Any = importlib.import_module(f"cachelaw.reference.{edition}").ChunkStatus
    context = (ReqContext("r"),) if edition == "v033" else ()
    chunks = [status(slot) for slot in range(4)]
    for slot, chunk in enumerate(chunks):
        policy.insert(b"key %d" % slot, chunk, *context)
    assert policy.evict(4, set()) is None
    for chunk in chunks:
        chunk.ref_cnt = 0
    assert sorted(key for key, _ in policy.evict(4, set())) == [b"key %d" % n for n in range(4)]


@each_policy
def test_what_is_no_bytes_key_is_refused(edition: str, name: str) -> None:
    policy: Any = getattr(importlib.import_module(f"cachelaw.fast.{edition}"), name)(4)
    context = () if edition == "v024" else (ReqContext("r"),)
    for wrong in ("text", 7, bytearray(b"key"), memoryview(b"key"), None):
        with pytest.raises(TypeError, match=f"a key must be bytes, got {type(wrong).__name__}"):
            policy.touch([b"key", wrong], *context)
        with pytest.raises(TypeError, match="a key must be bytes"):
            policy.insert(wrong, None, *(context if edition == "v033" else ()))
    assert policy.evict(1, set()) is None
    policy.touch([], *context)


def test_a_bytes_object_of_a_subclass_is_a_key() -> None:
    class Key(bytes):
        pass

    from cachelaw.fast.v024 import LRU
    from cachelaw.reference.v024 import ChunkStatus

    policy, chunk = LRU(2), ChunkStatus(0)
    policy.insert(Key(b"one"), chunk)  # type: ignore[arg-type]
    chunk.ref_cnt = 0
    policy.mark_evictable(Key(b"one"))  # type: ignore[arg-type]
    policy.touch([Key(b"one")])  # type: ignore[list-item]
    assert policy.get(b"one") is chunk  # type: ignore[arg-type]
    assert policy.evict(1, set()) == [(b"one", chunk)]


@pytest.mark.parametrize("capacity", [0, -1, True, "4", 2.0])
def test_a_capacity_that_cannot_be_is_refused(capacity: Any) -> None:
    from cachelaw.fast import ARC, LRU

    for policy in (LRU, ARC):
        with pytest.raises(ValueError, match="cache_capacity must be"):
            policy(capacity)
