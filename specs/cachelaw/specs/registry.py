"""The clauses, page by page, in the order in which the Markdown files hold them."""

from __future__ import annotations

from functools import partial

from cachelaw.specs.clause import Clause

SEED_BASE = "seed 000 (`policies/base.py` of vLLM 0.31)"
SEED_LRU = "seed 001 (`policies/lru.py` of vLLM 0.24)"
SEED_FILTER = "seed 003 (`reuse_manager.py` of vLLM 0.19)"
DRIVEN = "vLLM 0.19.1 to 0.33.0, driven"
MANAGERS = "the managers of vLLM 0.19.1 to 0.33.0"
PAPER = "Megiddo and Modha, FAST'03"

_HOST = "binds the caller, not the policy; `reference/.../protocol.py` keeps it and is tested"
_TYPE = "binds the host's status type, not a policy; tested on ours and on those of the releases"
_BASE = "binds the base class that a host supplies; tested on ours and on those of the releases"

chunk = partial(Clause, page="chunk-status", profile=None)
contract = partial(Clause, page="cache-policy", profile="contract")
host = partial(Clause, page="cache-policy", profile=None, no_law=_HOST)
base = partial(Clause, page="cache-policy", profile=None, no_law=_BASE)
lru = partial(Clause, page="lru", profile="lru")
arc = partial(Clause, page="arc", profile="arc")
order = partial(Clause, page="request-order", profile=None)
reuse = partial(Clause, page="reuse-filter", profile="reuse-filter")

CHUNK_STATUS = (
    chunk(
        name="chunk-status/layout",
        statement="A status is a `ctypes.Structure` of an int32 ref count, `ref_cnt`, followed by "
        "an int64 slot, `chunk_id` (`block_id` of `BlockStatus` before v0.30).",
        source=SEED_BASE,
        modified="v0.30: renamed from BlockStatus, block_id",
        no_law=_TYPE,
    ),
    chunk(
        name="chunk-status/starts-pending",
        statement="A status is constructed from its slot alone and starts with ref count -1.",
        source=SEED_BASE,
        no_law=_TYPE,
    ),
    chunk(
        name="chunk-status/ready-when-not-negative",
        statement="`is_ready` is true exactly when the ref count is 0 or more.",
        source=SEED_BASE,
        no_law=_TYPE,
    ),
    chunk(
        name="chunk-status/ref-count-counts-loads",
        statement="The ref count is the number of loads that read the chunk; -1 means that it is "
        "pending, being stored and not yet readable.",
        source=SEED_BASE,
        no_law=_HOST,
    ),
    chunk(
        name="chunk-status/slot-is-unique",
        statement="No two residents have the same slot, and every slot is below the capacity.",
        source=MANAGERS,
        no_law=_HOST,
    ),
    chunk(
        name="chunk-status/manager-writes",
        statement="Only the manager writes a status. A policy reads the ref count and leaves both "
        "fields as they are.",
        source="our decision; no release's policy writes one",
        profile="contract",
        reason="Two writers of one count lose updates; a policy that pins for itself would make "
        "the manager's books wrong.",
    ),
)

CACHE_POLICY = (
    # -- the calls
    contract(
        name="call/valid-call-returns",
        statement="A call that the protocol allows raises nothing.",
        source=f"{DRIVEN}; known bug B04",
    ),
    contract(
        name="call/arguments-unchanged",
        statement="A call leaves the collections it is given as they were. What it keeps in the "
        "request context's own state is no change of its arguments.",
        source="our decision; every release obeys",
        reason="The manager uses the set of protected keys and the request's key sets afterwards.",
    ),
    contract(
        name="keys/equal-is-same",
        statement="Keys are the same when they are equal; hosts pass fresh objects on every call.",
        source=f"{SEED_BASE}: an offload key is bytes",
    ),
    contract(
        name="instances/share-nothing",
        statement="What is done to one instance never shows in another.",
        source="our decision; every release obeys",
        reason="A host holds one policy for each cache it has.",
    ),
    contract(
        name="determinism/same-calls-same-results",
        statement="Two instances that are given the same calls answer alike. A policy may declare "
        "itself `randomized`; then this and all that rests on it is not applicable.",
        source="our decision; every release obeys",
        reason="A decision that cannot be repeated cannot be debugged.",
    ),
    contract(
        name="determinism/independent-of-hash-seed",
        statement="The answers are the same in processes with different hash seeds.",
        source="our decision; every release obeys",
        reason="Faults of public policies: an order taken from iterating a set of bytes.",
    ),
    # -- get
    contract(
        name="get/same-object",
        statement="`get` of a resident key returns the very object that was inserted under it.",
        source=f"{SEED_BASE}: find the chunk",
        reason="The manager writes the ref count into it.",
    ),
    contract(
        name="get/absent-is-none",
        statement="`get` returns None for a key that is not resident: never inserted, evicted "
        "(and perhaps remembered as a ghost), removed or cleared.",
        source=f"{SEED_BASE}; known bug B58",
    ),
    contract(
        name="get/no-side-effect",
        statement="`get` changes nothing. It may be called any number of times, by anyone, and is "
        "not a use.",
        source=f"{MANAGERS}; known bug B74",
        reason="Managers call it to find out whether a key is there.",
    ),
    # -- insert, remove
    contract(
        name="insert/makes-resident",
        statement="After `insert` the key is resident and every other key is as it was.",
        source=SEED_BASE,
    ),
    contract(
        name="remove/forgets",
        statement="After `remove` the key is absent and every other key is as it was.",
        source=SEED_BASE,
    ),
    # -- uses
    contract(
        name="touch/keeps-residency",
        statement="`touch`, `on_store_miss`, `on_request_access` and `on_request_finished` make "
        "no key resident and none absent.",
        source=f"{DRIVEN}; known bugs B04, B52",
    ),
    contract(
        name="touch/absent-ignored",
        statement="Absent keys in `touch`, `on_store_miss`, `on_request_access` and "
        "`on_request_finished` raise nothing. Those that are neither resident nor remembered as "
        "ghosts leave no trace.",
        source=f"{DRIVEN}; rule C14",
        reason="C14 says it of all absent keys; ARC's ghosts are absent and do leave a trace.",
    ),
    contract(
        name="touch/any-iterable",
        statement="`touch`, `on_store_miss` and `on_request_access` take any iterable, also one "
        "that can be walked only once.",
        source=f"{SEED_BASE}: the type is Iterable",
    ),
    # -- evict
    contract(
        name="evict/list-of-pairs",
        statement="`evict` returns None or a list of (key, chunk) tuples.",
        source=SEED_BASE,
    ),
    contract(
        name="evict/exact-count",
        statement="If it does not return None, `evict(n, protected)` returns exactly n entries.",
        source=f"{SEED_BASE}; known bug B68",
    ),
    contract(
        name="evict/distinct",
        statement="No key is returned twice by one call.",
        source=f"{SEED_BASE}; rule C1",
    ),
    contract(
        name="evict/resident-only",
        statement="Every key returned was resident.",
        source=f"{SEED_BASE}; rule C1",
    ),
    contract(
        name="evict/idle-only",
        statement="No pending and no pinned chunk is returned.",
        source=f"{SEED_BASE}; rule C4",
    ),
    contract(
        name="evict/protected-honoured",
        statement="No key in `protected` is returned.",
        source=f"{SEED_BASE}; rule C4; known bug B17",
    ),
    contract(
        name="evict/same-object",
        statement="Each key comes with the very object that was inserted under it.",
        source=SEED_BASE,
        reason="The manager frees the slot that the object names.",
    ),
    contract(
        name="evict/forgets-victims",
        statement="After `evict` the keys it returned are absent.",
        source=f"{SEED_BASE}; known bug B55",
    ),
    contract(
        name="evict/keeps-others",
        statement="After `evict` every resident that it did not return is still resident.",
        source=f"{SEED_BASE}: exactly n",
    ),
    contract(
        name="evict/none-only-when-short",
        statement="`evict` returns None only when fewer than n chunks are idle and not protected, "
        "whatever list or order holds them. A policy may declare that it `may_refuse`; then this "
        "is not applicable.",
        source=f"{SEED_BASE}: or None if n evictions cannot be satisfied; rule C2; known bug B01",
        reason="A refusal drops the store. The ARC of v0.19 to v0.27 breaks this clause; see "
        "`arc/no-fallback-to-t1`.",
    ),
    contract(
        name="evict/none-changes-nothing",
        statement="When `evict` returns None, everything is as it was: residents, order, and "
        "whatever else shows in a later answer.",
        source=f"{SEED_BASE}: atomic; rule C3; known bugs B03, B34",
        reason="C3 is about this call alone. An offer that is refused may have moved ARC's target "
        "before, by `on_store_miss`.",
    ),
    contract(
        name="evict/zero-is-empty",
        statement="`evict(0, protected)` returns an empty list and changes nothing.",
        source=f"{SEED_LRU}; every release",
    ),
    # -- clear
    contract(
        name="clear/forgets-all",
        statement="After `clear` no key is resident, whatever the ref counts were.",
        source=f"{SEED_BASE}; rule C13; known bug B29",
        since="v0.22",
    ),
    contract(
        name="clear/equals-new",
        statement="After `clear` a policy behaves like a new one ever after: ghosts, adaptive "
        "state, orders and counters are reset, and what a request remembers is void.",
        source=f"{SEED_BASE}; rule C13; known bugs B29, B45",
        since="v0.22",
    ),
    # -- marks
    contract(
        name="marks/keep-residency",
        statement="`mark_evictable` and `mark_non_evictable` make no key resident and none absent.",
        source=SEED_BASE,
        since="v0.24",
    ),
    # -- growth
    contract(
        name="cost/linear",
        statement="Over a run, the hash and comparison calls on keys grow no faster than linearly, "
        "up to a logarithm, with the keys passed and the chunks inserted, evicted and passed over; "
        "and so do those of one evict of n chunks. An eviction may pass over each resident once. "
        "A subject that declares itself a specification is not judged.",
        source="rule C20; known bug B02; our decision on the measure",
        reason="The ARC of releases up to 0.27.1 breaks this clause: it starts its scan over for "
        "each victim of a batch.",
    ),
    contract(
        name="memory/bounded-by-residents",
        statement="What a policy retains is bounded by its residents and ghosts, plus a constant, "
        "however long it runs.",
        source="rule C20; known bug B14; our decision on the measure",
        reason="LRU from v0.31 keeps up to 64 stale records, which the constant allows for.",
    ),
    # -- a state of its own
    contract(
        name="state/no-side-effect",
        statement="To ask a policy for its `cachelaw_state()` changes nothing: it answers every "
        "later call as if nobody had asked. Whoever offers the method can always be asked.",
        source="our decision",
        reason="The suite searches by that state. A policy that puts work off does it when it is "
        "asked, and that is where our own fast ARC once lost a mark.",
    ),
    # -- the base class
    base(
        name="hooks/store-miss-defaults-to-touch",
        statement="By default `on_store_miss` touches the keys.",
        source=SEED_BASE,
        since="v0.31",
    ),
    base(
        name="hooks/finish-defaults-to-touch",
        statement="By default `on_request_finished` touches each group, one call a group.",
        source=SEED_BASE,
        since="v0.31",
    ),
    base(
        name="hooks/access-defaults-to-nothing",
        statement="By default `on_request_access` does nothing.",
        source="vLLM 0.33.0",
        since="v0.33",
    ),
    base(
        name="hooks/marks-default-to-nothing",
        statement="By default `mark_evictable` and `mark_non_evictable` do nothing.",
        source=SEED_BASE,
        since="v0.24",
    ),
    base(
        name="init/takes-capacity",
        statement="A policy is constructed from its capacity alone, by the keyword "
        "`cache_capacity`; from v0.27 the base class keeps it under that name.",
        source=f"{SEED_BASE}; {MANAGERS}",
        modified="v0.27: the base class has a constructor",
        no_law="a subject that cannot be constructed is unusable: status 2, and no verdict",
    ),
    base(
        name="hooks/the-rest-is-abstract",
        statement="`get`, `insert`, `remove`, `touch`, `evict` and, from v0.22, `clear` have no "
        "default; a class that lacks one cannot be constructed. Before v0.27 the constructor is "
        "one of them.",
        source=f"{SEED_BASE}; the base classes of vLLM 0.19.0 to 0.33.0",
        modified="v0.27: the base class has a constructor",
    ),
    # -- the caller
    host(
        name="caller/inserts-absent-keys",
        statement="`insert` is called for absent keys only, with a pending chunk, when a slot is "
        "free; residents never exceed the capacity.",
        source=MANAGERS,
        reason="Inserting over a resident is unspecified (B15): the releases disagree.",
    ),
    host(
        name="caller/removes-pending-keys",
        statement="`remove` is called for resident pending keys only, when their store failed.",
        source=f"{SEED_BASE}; {MANAGERS}; known bug B19",
        reason="Removing an absent key is unspecified (B16): LRU raises, ARC is silent.",
    ),
    host(
        name="caller/protects-the-offer",
        statement="The eviction that an offer triggers protects every key of the offer, resident "
        "or not.",
        source=f"{MANAGERS}; rule C15; known bug B17",
    ),
    host(
        name="caller/evicts-the-shortfall",
        statement="An offer asks for as many victims as slots are short, in one call, and not at "
        "all when none is; from v0.24 it is refused unasked when fewer chunks are idle.",
        source=f"{MANAGERS}; known bug B54",
        modified="v0.24: refused unasked",
    ),
    host(
        name="caller/marks-transitions",
        statement="`mark_non_evictable` is called before a ref count leaves 0 for 1, "
        "`mark_evictable` after one has become 0; pins are counted and releases balanced.",
        source=f"{SEED_BASE}; {MANAGERS}; rule C16",
        since="v0.24",
    ),
    host(
        name="caller/misses-once-a-request",
        statement="`on_store_miss` is called with the absent keys of an offer that the request has "
        "not missed before, before anything is evicted or inserted for it.",
        source=f"{SEED_BASE}; {MANAGERS}; rule C10; known bug B09",
        since="v0.31",
        reason="Within one call no release removes duplicates; once per request is the manager's.",
    ),
    host(
        name="caller/access-on-first-sight",
        statement="`on_request_access` is called with the keys that a request sees for the first "
        "time, absent or ready, in the order of the offer or load.",
        source="the manager of vLLM 0.33.0",
        since="v0.33",
    ),
    host(
        name="caller/finishes-once",
        statement="`on_request_finished` is called once, when the request ends, also if it saw "
        "nothing; keys in it may meanwhile have been evicted, refused or never stored. Of one that "
        "began before a reset, the call tells what it did since; if nothing, there is no call.",
        source=f"{SEED_BASE}; {MANAGERS}",
        since="v0.31",
    ),
    host(
        name="caller/groups-head-to-tail",
        statement="The groups of `on_request_finished` hold every key that the request loaded or "
        "offered while it was not pending. They are sorted by index; within one, keys are sorted "
        "by position if all are known, else they stand in the order of first sight.",
        source=f"{SEED_BASE}; the managers of vLLM 0.31 to 0.33",
        since="v0.31",
    ),
    host(
        name="caller/tells-insertion-from-reuse",
        statement="A key is `reused` if the request found it ready and had not stored it itself, "
        "and `insertion only` if it stored it and never reused it.",
        source=f"{SEED_BASE}; the managers of vLLM 0.31 to 0.33; rule C8",
        since="v0.31",
    ),
    host(
        name="caller/resets-by-clear",
        statement="A reset calls `clear` whatever is pinned or pending; the completions that are "
        "outstanding then never arrive.",
        source=f"{MANAGERS}; known bug B29",
        since="v0.22",
    ),
)

LRU = (
    lru(
        name="lru/oldest-leaves-first",
        statement="`evict` returns the eligible chunks whose last use lies furthest back, the "
        "oldest first.",
        source=f"{SEED_LRU}; {DRIVEN}; rule C5; known bug B66",
    ),
    lru(
        name="lru/insert-is-use",
        statement="A chunk that is inserted is the most recently used. In v0.33 this holds of one "
        "whose position its request does not know; for the others see `lru/batches-share-a-rank`.",
        source=f"{SEED_LRU}: first time the key is added; known bug B63",
        until="v0.22",
        again="v0.31",
        modified="v0.33: request ranks",
    ),
    lru(
        name="lru/touch-is-use",
        statement="A touched idle chunk is the most recently used.",
        source=f"{SEED_LRU}: touch; known bugs B60, B66",
    ),
    lru(
        name="lru/batch-tail-first",
        statement="Within one touch the first key ends most recent and the last key oldest.",
        source=f"{SEED_LRU}; rule C7; known bug B65",
        reason="A prefix is usable from its head; its tail has to go first.",
    ),
    lru(
        name="lru/passed-over-keeps-place",
        statement="A chunk that an eviction passes over, because it is busy or protected, keeps "
        "its place in the order. (In v0.24 to v0.30 a busy chunk has none.)",
        source=f"{SEED_LRU}; {DRIVEN}",
    ),
    lru(
        name="lru/transfer-is-no-use",
        statement="The start and the end of a load and the end of a store change no order.",
        source="vLLM 0.19.1 to 0.22.1 and 0.31.0 to 0.33.0, driven; rule C5; known bug B06",
        until="v0.22",
        again="v0.31",
        reason="Between, transfers decide: `lru/becoming-idle-is-use`.",
    ),
    lru(
        name="lru/becoming-idle-is-use",
        statement="A chunk whose ref count becomes 0, by the end of its store or of its last load, "
        "is the most recently used.",
        source=f"{SEED_LRU}: load job completion; vLLM 0.24.0 to 0.30.0, driven",
        since="v0.24",
        until="v0.30",
        reason="The rule of its day. It lets transfers decide the order (B06), and v0.31 undid it.",
    ),
    lru(
        name="lru/touch-of-busy-counts",
        statement="A touch of a pinned or pending chunk is a use like any other.",
        source="vLLM 0.19.1 to 0.22.1 and 0.31.0 to 0.33.0, driven; rule C6; known bug B07",
        until="v0.22",
        again="v0.31",
        reason="Between, it is lost: `lru/touch-of-busy-lost`.",
    ),
    lru(
        name="lru/touch-of-busy-lost",
        statement="A touch of a pinned or pending chunk changes nothing.",
        source=f"{SEED_LRU}: active blocks are untouched; vLLM 0.24.0 to 0.30.0, driven",
        since="v0.24",
        until="v0.30",
        reason="The rule of its day (B07), and v0.31 undid it.",
    ),
    lru(
        name="lru/finish-is-use",
        statement="When a request ends, all resident chunks that it saw become the most recently "
        "used.",
        source="vLLM 0.31.0 to 0.33.0, driven; known bugs B31, B75",
        since="v0.31",
    ),
    lru(
        name="lru/finish-in-prefix-order",
        statement="At the end of a request its chunks are used in the request order of all groups "
        "together, the tail of the prefix first.",
        source="vLLM 0.31.0 to 0.33.0, driven; rule C7; known bug B11",
        since="v0.31",
    ),
    lru(
        name="lru/batches-share-a-rank",
        statement="Chunks that a running request stores, and whose positions it knows, share one "
        "rank, given at its first access; within it, later positions leave first, across batches.",
        source="vLLM 0.33.0, driven; rule C7; known bug B10",
        since="v0.33",
    ),
    lru(
        name="lru/access-joins-rank",
        statement="A resident that a running request sees for the first time, at a position it "
        "knows, joins the request's rank, also while it is busy.",
        source="vLLM 0.33.0, driven",
        since="v0.33",
    ),
    lru(
        name="lru/access-never-demotes",
        statement="A chunk that has the request's rank or a higher one already keeps it.",
        source="vLLM 0.33.0, driven; known bug B10, companion",
        since="v0.33",
    ),
    lru(
        name="lru/access-needs-position",
        statement="A key whose position the request does not know is not moved by its access.",
        source="vLLM 0.33.0, driven",
        since="v0.33",
    ),
    lru(
        name="lru/equal-rank-by-key-order",
        statement="Chunks of equal rank and position leave in the order of their keys' bytes.",
        source="vLLM 0.33.0, driven",
        since="v0.33",
        reason="Two groups of one request end at the same token. The releases break the tie so; "
        "a determined order lets a reference be compared step by step.",
    ),
    lru(
        name="lru/clear-voids-request-ranks",
        statement="A rank given to a request before a `clear` is void after it: the request's next "
        "access gives it a new one.",
        source="vLLM 0.33.0, driven; known bug B29",
        since="v0.33",
        implied_by=("clear/equals-new",),
    ),
)

ARC = (
    arc(
        name="arc/lists-disjoint",
        statement="T1, T2, B1 and B2 have no key in common. T1 and T2 together hold the residents.",
        source=f"{DRIVEN}; rule C9",
        no_law="a clause of the state; it shows in answers only through the clauses below, and is "
        "checked on the reference after every step",
    ),
    arc(
        name="arc/insert-into-t1",
        statement="A new chunk enters T1 at the recent end, also if its key is a ghost.",
        source=f"{SEED_BASE}; {DRIVEN}; rule C12",
        reason="The paper moves a ghost that is hit to T2 (Figure 4, Cases II and III).",
    ),
    arc(
        name="arc/insert-takes-ghost",
        statement="Inserting a key takes it out of B1 and B2.",
        source=f"{SEED_BASE}: also removes from ghost lists",
    ),
    arc(
        name="arc/remove-leaves-no-ghost",
        statement="`remove` leaves the key in neither ghost list.",
        source=f"{DRIVEN}; rule C12; known bug B47",
    ),
    arc(
        name="arc/second-use-promotes",
        statement="A touch of a ready chunk in T1 moves it to the recent end of T2.",
        source=f"{DRIVEN}; {PAPER}, Figure 4, Case I",
    ),
    arc(
        name="arc/use-renews-t2",
        statement="A touch of a chunk in T2 moves it to the recent end of T2.",
        source=f"{DRIVEN}; {PAPER}, Figure 4, Case I",
        modified="v0.31: so does the end of a request that reused it, or stored it",
    ),
    arc(
        name="arc/pending-stays-in-t1",
        statement="A touch of a pending chunk in T1 moves it to the recent end of T1.",
        source=f"{DRIVEN}; rule C6; known bug B04",
        reason="The use belongs to the store that is under way; it is not a second one.",
    ),
    arc(
        name="arc/batch-tail-first",
        statement="Within one touch the last key is taken in first, so that the head ends most "
        "recent.",
        source=f"{DRIVEN}; rule C7; known bug B65",
    ),
    arc(
        name="arc/touch-adapts",
        statement="A touch of a ghost moves the target.",
        source=f"{DRIVEN}",
    ),
    arc(
        name="arc/miss-adapts",
        statement="`on_store_miss` of a ghost moves the target, before the insert takes the ghost.",
        source="vLLM 0.31.0 to 0.33.0, driven; rule C10; known bugs B09, B50",
        since="v0.31",
    ),
    arc(
        name="arc/store-is-not-reuse",
        statement="At the end of a request a chunk that it only stored moves to the recent end of "
        "the list that it is in.",
        source="vLLM 0.31.0 to 0.33.0, driven; rule C8; known bug B08",
        since="v0.31",
    ),
    arc(
        name="arc/reuse-promotes",
        statement="At the end of a request a resident key that it reused moves from T1 to the "
        "recent end of T2, whatever chunk holds the key by then, pending or not.",
        source="vLLM 0.31.0 to 0.33.0, driven; known bug B13",
        since="v0.31",
        reason="Releases depart from rule C9 here: a chunk that was never readable can reach T2. "
        "The edition says what they do.",
    ),
    arc(
        name="arc/merely-seen-stays",
        statement="At the end of a request a resident that it neither stored nor reused stays "
        "where it is; so does a ghost, and the target does not move.",
        source="vLLM 0.31.0 to 0.33.0, driven",
        since="v0.31",
        reason="Its own offer was refused, and another request stored the key since.",
    ),
    arc(
        name="arc/finish-in-prefix-order",
        statement="At the end of a request its chunks are taken in in the request order of all "
        "groups together, the tail of the prefix first.",
        source="vLLM 0.31.0 to 0.33.0, driven; rule C7; known bug B11",
        since="v0.31",
    ),
    arc(
        name="arc/target-starts-at-zero",
        statement="The target of a new policy is 0.",
        source=f"{DRIVEN}; {PAPER}, Figure 4; rule C10; known bug B57",
    ),
    arc(
        name="arc/b1-hit-raises-target",
        statement="A hit in B1 raises the target by the step.",
        source=f"{DRIVEN}; {PAPER}, Figure 4, Case II",
    ),
    arc(
        name="arc/b2-hit-lowers-target",
        statement="A hit in B2 lowers the target by the step.",
        source=f"{DRIVEN}; {PAPER}, Figure 4, Case III",
    ),
    arc(
        name="arc/step-is-ratio-of-ghosts",
        statement="The step is the size of the other ghost list over that of the one that was hit, "
        "at least 1, taken before anything moves, and not rounded.",
        source=f"{DRIVEN}; {PAPER}, Figure 4; rule C10; known bug B49",
        reason="The paper leaves open whether p is an integer; the releases keep a double.",
    ),
    arc(
        name="arc/target-bounded",
        statement="The target stays within 0 and the capacity.",
        source=f"{DRIVEN}; {PAPER}, Figure 4; rule C10; known bug B05",
    ),
    arc(
        name="arc/ghost-hit-renews",
        statement="A ghost that is hit moves to the recent end of its list.",
        source=f"{DRIVEN}",
        reason="The paper takes it away, since its hit is always followed by the insert.",
    ),
    arc(
        name="arc/t1-gives-at-target",
        statement="A victim comes from T1 when the size of T1 is at least the target rounded down "
        "and T1 has an eligible chunk.",
        source=f"{DRIVEN}; rule C11",
        reason="The paper compares with strictly greater, and with equal on a B2 hit.",
    ),
    arc(
        name="arc/t2-gives-below-target",
        statement="A victim comes from T2 when the size of T1 is below the target rounded down and "
        "T2 has an eligible chunk.",
        source=f"{DRIVEN}; rule C11",
    ),
    arc(
        name="arc/target-rounded-in-comparison",
        statement="The target is rounded down only where it is compared; it keeps its fraction.",
        source=f"{DRIVEN}; rule C11; known bug B49",
    ),
    arc(
        name="arc/size-counts-busy-chunks",
        statement="The size of T1 that is compared with the target counts pinned, pending and "
        "protected chunks.",
        source=f"{DRIVEN}; rule C11",
    ),
    arc(
        name="arc/each-victim-anew",
        statement="In a batch the comparison is made for each victim, with T1 as large as the "
        "victims chosen before leave it.",
        source=f"{DRIVEN}; rule C11",
    ),
    arc(
        name="arc/oldest-of-its-list-first",
        statement="The victim is the eligible chunk of its list whose last use lies furthest back; "
        "chunks that are passed over keep their places, and victims are returned in the order in "
        "which they were chosen.",
        source=f"{DRIVEN}; {PAPER}, Figure 4, REPLACE",
    ),
    arc(
        name="arc/falls-back-to-t2",
        statement="When T1 should give but has no eligible chunk, T2 gives.",
        source=f"{DRIVEN}",
    ),
    arc(
        name="arc/falls-back-to-t1",
        statement="When T2 should give but has no eligible chunk, T1 gives.",
        source="vLLM 0.30.0 to 0.33.0, driven; known bug B01",
        since="v0.30",
    ),
    arc(
        name="arc/no-fallback-to-t1",
        statement="When T2 should give but has no eligible chunk, `evict` returns None.",
        source="vLLM 0.19.1 to 0.29.0, driven; known bug B01",
        until="v0.27",
        reason="The fault of its day: the edition reproduces it, and a subject that does is "
        "rejected under `evict/none-only-when-short`.",
    ),
    arc(
        name="arc/victim-becomes-ghost",
        statement="A victim's key enters, at the recent end, B1 if it came from T1 and B2 if it "
        "came from T2.",
        source=f"{DRIVEN}; {PAPER}, Figure 4, REPLACE",
    ),
    arc(
        name="arc/ghosts-trimmed-to-capacity",
        statement="At the end of a successful eviction each ghost list loses its oldest keys until "
        "it has no more than the capacity.",
        source=f"{SEED_BASE}; {DRIVEN}; rule C9; known bug B05",
        reason="The paper bounds T1 with B1 by c and all four lists by 2c.",
    ),
    arc(
        name="arc/clear-forgets-all",
        statement="`clear` empties the ghost lists and sets the target to 0.",
        source=f"{SEED_BASE}; rule C13; known bug B45",
        since="v0.22",
        implied_by=("clear/equals-new",),
    ),
)

REQUEST_ORDER = (
    order(
        name="request-order/by-end-token",
        statement="If the position of every key of every group is known, the keys of all groups "
        "are sorted together by it, head first.",
        source=SEED_BASE,
        since="v0.31",
        no_law="a function of the host, not of a policy; tested on ours and on the releases'",
    ),
    order(
        name="request-order/partly-known-keeps-call-order",
        statement="If one position is not known, none is used: group after group, as called.",
        source=SEED_BASE,
        since="v0.31",
        reason="The seed compares two lengths; a mixed order would put keys of unknown position "
        "anywhere.",
        no_law="a function of the host, not of a policy; tested on ours and on the releases'",
    ),
    order(
        name="request-order/duplicates-keep-call-order",
        statement="If a key stands there twice, the order is that of the call and the key is "
        "returned twice.",
        source=f"{SEED_BASE}: fewer positions than keys",
        since="v0.31",
        reason="What the seed does; a manager never passes duplicates, so nothing depends on it.",
        no_law="a function of the host, not of a policy; tested on ours and on the releases'",
    ),
    order(
        name="request-order/ties-keep-call-order",
        statement="Keys of equal position stand in the order of the call: lower group first.",
        source=f"{SEED_BASE}: a stable sort",
        since="v0.31",
        no_law="a function of the host, not of a policy; tested on ours and on the releases'",
    ),
)

_FILTER_EDITIONS = "v0.20: lookup takes one key and the context"

REUSE_FILTER = (
    reuse(
        name="reuse-filter/threshold-at-least-two",
        statement="A `store_threshold` below 2 raises ValueError at construction.",
        source=SEED_FILTER,
        until="v0.20",
        reason="A threshold of 1 would filter nothing.",
    ),
    reuse(
        name="reuse-filter/tracker-at-least-one",
        statement="A `max_tracker_size` below 1 raises ValueError at construction.",
        source=f"{SEED_FILTER}; known bug B39",
        until="v0.20",
    ),
    reuse(
        name="reuse-filter/defaults",
        statement="Where they are not given, `store_threshold` is 2 and `max_tracker_size` 64,000; "
        "both can be read under these names.",
        source=SEED_FILTER,
        until="v0.20",
        no_law="a signature, not a behaviour; tested on our class",
    ),
    reuse(
        name="reuse-filter/lookup-counts-each-key",
        statement="`lookup` adds one to the count of each key it is given, resident or not, hit or "
        "miss; a key that is not tracked starts at 1.",
        source=f"{SEED_FILTER}; rule C19; known bugs B37, B40",
        until="v0.20",
        modified=_FILTER_EDITIONS,
        reason="The unit is the call, not the request; vLLM 0.29 counts offers instead.",
    ),
    reuse(
        name="reuse-filter/lookup-delegates-all",
        statement="`lookup` passes all its keys on, in one call and in their order, and returns "
        "the backing's answer.",
        source=SEED_FILTER,
        until="v0.20",
        modified=_FILTER_EDITIONS,
    ),
    reuse(
        name="reuse-filter/repeat-renews",
        statement="A tracked key that is counted again becomes the most recently seen.",
        source=f"{SEED_FILTER}; rule C19; known bug B43",
        until="v0.20",
    ),
    reuse(
        name="reuse-filter/tracker-drops-least-recent",
        statement="The tracker holds at most `max_tracker_size` keys; a new one takes the place of "
        "the least recently seen, whose count is lost, even within one lookup.",
        source=f"{SEED_FILTER}; rule C19; known bugs B35, B43",
        until="v0.20",
        modified=_FILTER_EDITIONS,
        reason="A lookup longer than the tracker pushes its own head out (B35).",
    ),
    reuse(
        name="reuse-filter/store-needs-threshold",
        statement="`prepare_store` lets through, in their order, the keys whose count is at least "
        "`store_threshold`.",
        source=f"{SEED_FILTER}; rule C19",
        until="v0.20",
    ),
    reuse(
        name="reuse-filter/filtered-before-backing",
        statement="The backing's `prepare_store` is given those keys alone, and its answer is "
        "returned.",
        source=f"{SEED_FILTER}: so that skipped blocks take no capacity",
        until="v0.20",
    ),
    reuse(
        name="reuse-filter/empty-offer-delegated",
        statement="An offer of which nothing is left is passed on, empty.",
        source=SEED_FILTER,
        until="v0.20",
    ),
    reuse(
        name="reuse-filter/all-else-delegated",
        statement="`prepare_load`, `touch`, `complete_load`, `complete_store` and `take_events` "
        "are passed on as they are, and count nothing.",
        source=SEED_FILTER,
        until="v0.20",
    ),
    reuse(
        name="reuse-filter/counts-outlive-chunks",
        statement="Nothing but the tracker's own bound makes a count smaller: a store, an "
        "eviction or a failed store leaves it.",
        source=f"{SEED_FILTER}; known bug B44",
        until="v0.20",
    ),
)

CLAUSES: dict[str, Clause] = {
    clause.name: clause
    for page in (CHUNK_STATUS, CACHE_POLICY, LRU, ARC, REUSE_FILTER, REQUEST_ORDER)
    for clause in page
}
"""Every clause by name."""
