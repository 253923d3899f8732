"""The kernels of LRU and ARC: plain Python on one array of integers, compiled by numba.

All that a policy knows lies in one array of 64-bit words, its *memory*: a header of counters, then
sections, each at an offset that the header names.

    index     finds the row of a key: a hash table with open addressing
    records   eight words a row: the key itself, its length, where it is, its rank
    log       LRU: ranks in the order in which they were given, two words each
    heap      LRU: ranks that were not the highest when they were given, three words each
    order     ARC and the reuse filter: the rows of each list as they came to it
    out       the rows that an eviction has chosen, or that will leave next
    tails     what is left of keys that are longer than a row holds

Calls on a policy arrive as *programs*: words that say what happened to which keys, in order, and
after them the keys, each filled up with zeros to whole words. A kernel reads nothing but its
program and the memory, and makes no arrays.

Keys are compared in full. A hash that collides costs time and changes no answer.

Everything that compiled code calls is in this file. The functions that a policy calls are
`lru_step`, `lru_unpark`, `arc_step`, `arc_select`, `arc_settle`, `arc_peek`, `arc_flag`,
`arc_unkeep`, `arc_doubt`, `filter_step`, `empty`, `move` and `live_tails`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from cachelaw.fast.compiled import kernel

if TYPE_CHECKING:
    from collections.abc import MutableSequence, Sequence

    Memory = MutableSequence[int]  # an array of int64, and what may be done with it
    Words = Sequence[int]

# --- Layout --------------------------------------------------------------------------------------

# Words of the header.
ROWS = 0  # how many rows there is room for
USED = 1  # how many rows were ever in use
FREE = 2  # the first row that is free again, -1 if none; its first word says the next
ORDER_SIZE = 3  # how many entries of each list fit
MASK = 4  # size of the index, a power of two, minus 1
SEED = 5  # goes into every hash
INDEX, RECORDS, LOG, HEAP, ORDER, OUT, TAILS = 6, 7, 8, 9, 10, 11, 12  # where they begin
LOG_SIZE, LOG_FIRST, LOG_END = 13, 14, 15  # how many entries fit, and which are in use
HEAP_SIZE, HEAP_COUNT = 16, 17
TAILS_SIZE, TAILS_USED = 18, 19
TAKEN = 20  # how many rows stand in `out`
PARKED = 21  # LRU: how many rows are parked
CAPACITY = 22  # ARC: the number of chunks that fit
TARGET = 23  # ARC: the target, as the bits of a double
WARMED = 24  # written only so that no compiler leaves out the reads of `warm`
COUNTS = 26  # how many rows each list has, lists 0 to 4
HIGHEST = 31  # LRU: the serial number of the last row in `out`
NEW_COUNT = 32  # how many rows the last program made
PASSED = 33  # ARC: how many rows the last look ahead passed over
FIRSTS, ENDS = 34, 39  # which entries of each list are in use
TAGS, FOUND = 48, 80  # what `warm` found out about the keys of the block at hand
NEW = 112  # the rows that the last program made: the number of the key and the row
LEAVING_TAGS, LEAVING = 368, 400  # the keys and rows of a block that is forgotten
HEADER = 432

BLOCK = 32  # how many keys are looked up together
ARITY = 8  # how many entries of the heap are below one: so many are read at once
AHEAD = 256  # LRU: how many more rows than are asked for may stay taken
QUEUE = 256  # how many rows a program may make
NUMBER = 1 << 32  # what the number of a key is times in NEW

# Words of a row. The key takes the first five, the last one with zeros at its end.
WIDTH = 8
META = 5  # length of the key times 256, plus where the row is
HI, LO = 6, 7  # LRU: the rank, (serial number, minus the end token)
SLOT = 6  # ARC and the reuse filter: the number of the row's entry in its list
COUNT = 7  # the reuse filter: how often the key was seen

FREED = -256  # the META of a row that is free: no key has that length

INLINE = 40  # the longest key that a row holds, in bytes
HEAD_WORDS = 4  # of a longer key; its fifth word says where in `tails` the rest is

# The lists; there is none of number 0.
LISTS = 5
T1, T2, B1, B2 = 1, 2, 3, 4

# LRU: where a row is.
LOGGED = 1  # in the log, by a rank that was the highest when it was given
HEAPED = 2  # in the heap, by any other rank
PARKED_ROW = 3  # in neither: it was found busy, and waits for its mark
TAKEN_ROW = 4  # in `out`

# ARC: where a row is is its list, plus these.
PLACE = 15
PENDING = 16  # its store has not ended: a touch is no second use
BUSY = 32  # it was found busy, and waits for its mark: evictions pass it over
KEPT = 64  # this eviction passes it over
PASSED_OVER = BUSY | KEPT

# What is said of a row in `out`, added to it.
ROW = (1 << 40) - 1
KEEP = 1 << 40  # ARC: it is protected
PARK = 1 << 41  # it is busy

# Programs. An instruction is a word (kind + 256 * number of keys), a word (rank) and, if the kind
# needs it, a word for each key. LRU:
LAST = 1  # the key has a place, the last, whether or not it had one
TOUCH = 2  # the key takes the last place if it has one
AT = 3  # the key has the place (rank, word), whether or not it had one
JOIN = 4  # the key takes the place (rank, word) if it has a lower one
FORGET = 5  # the key has no place
READY = 6  # the key's chunk is idle
# ARC, besides TOUCH, FORGET and READY:
INSERT = 7  # the key enters T1; the rank says whether its chunk is pending
MISS = 8  # the key is about to be stored
FINISH = 9  # a request that used the key has ended; the word says: 0 stored, 1 reused
# No keys, and the first of all: so many rows were evicted as the rank says. Two words follow for
# each of them: the number of the key in the program before which it left, and the row.
LEAVE = 12
# The reuse filter:
SEE = 10  # the key was looked up
ASK = 11  # was the key looked up often enough?
ONE = 256  # added to a kind: an instruction for one key

MIXED = -1  # stands for the length of keys of several lengths; each follows a word with its own
NOTHING: Any = np.zeros(1, np.int64)  # a program of no instructions

LOW = (1 << 32) - 1
LITTLE = sys.byteorder == "little"  # whether the first byte of a key is the lowest of its word


# --- Keys ----------------------------------------------------------------------------------------


@kernel(inline=True, borrows=True)
def row_word(memory: Memory, row: int, w: int) -> int:
    """Return word `w` of the key in `row`."""
    at = memory[RECORDS] + row * WIDTH
    if w < HEAD_WORDS or memory[at + META] >> 8 <= INLINE:
        return memory[at + w]
    return memory[memory[TAILS] + memory[at + HEAD_WORDS] + w - HEAD_WORDS]


@kernel(inline=True, borrows=True)
def signed(word: Any) -> int:
    """Return an unsigned word as the signed one of the same bits."""
    return np.int64(word)  # type: ignore[no-any-return]


@kernel(inline=True, borrows=True)
def stirred(state: int, word: int) -> int:
    """Take one word into a hash."""
    mixed = (np.uint64(state) ^ np.uint64(word)) * np.uint64(0xFF51AFD7ED558CCD)
    return signed(mixed ^ (mixed >> np.uint64(32)))


@kernel(inline=True, borrows=True)
def tag_of(state: int) -> int:
    """Return the 31 bits of a hash by which a key is looked up."""
    mixed = np.uint64(state) * np.uint64(0xC4CEB9FE1A85EC53)
    return signed(mixed >> np.uint64(33))


@kernel(inline=True, borrows=True)
def key_tag(memory: Memory, data: Words, start: int, length: int) -> int:
    """Return the tag of the key of `length` bytes at word `start`."""
    state = memory[SEED] ^ length
    for w in range((length + 7) >> 3):
        state = stirred(state, data[start + w])
    return tag_of(state)


@kernel(borrows=True)
def row_tag(memory: Memory, row: int) -> int:
    """Return the tag of the key in `row`."""
    length = memory[memory[RECORDS] + row * WIDTH + META] >> 8
    state = memory[SEED] ^ length
    for w in range((length + 7) >> 3):
        state = stirred(state, row_word(memory, row, w))
    return tag_of(state)


@kernel(inline=True, borrows=True)
def same_key(memory: Memory, data: Words, start: int, length: int, row: int) -> bool:
    """Say whether `row` holds the key of `length` bytes at word `start`."""
    at, words = memory[RECORDS] + row * WIDTH, (length + 7) >> 3
    if memory[at + META] >> 8 != length:
        return False
    inline = words if length <= INLINE else HEAD_WORDS
    # One branch for all words: none of them is likely to differ.
    different = 0
    for w in range(inline):
        different |= memory[at + w] ^ data[start + w]
    for w in range(inline, words):
        different |= row_word(memory, row, w) ^ data[start + w]
    return different == 0


@kernel(borrows=True)
def key_less(memory: Memory, one: int, other: int) -> bool:
    """Say whether the key in row `one` stands before that in row `other`, by their bytes."""
    length = memory[memory[RECORDS] + one * WIDTH + META] >> 8
    length_other = memory[memory[RECORDS] + other * WIDTH + META] >> 8
    for w in range((min(length, length_other) + 7) >> 3):
        a, b = row_word(memory, one, w), row_word(memory, other, w)
        if a != b:
            for i in range(0, 64, 8):
                shift = i if LITTLE else 56 - i
                byte, byte_other = (a >> shift) & 255, (b >> shift) & 255
                if byte != byte_other:
                    return byte < byte_other
    return length < length_other


# --- Rows and the index --------------------------------------------------------------------------


@kernel(borrows=True)
def find(memory: Memory, data: Words, start: int, length: int, tag: int) -> int:
    """Return the row of the key of `length` bytes at word `start`, -1 if it has none."""
    index, mask = memory[INDEX], memory[MASK]
    at = tag & mask
    while memory[index + at] != 0:
        entry = memory[index + at]
        if entry >> 32 == tag:
            row = (entry & LOW) - 1
            if same_key(memory, data, start, length, row):
                return row
        at = (at + 1) & mask
    return -1


@kernel(inline=True, borrows=True)
def likely_row(memory: Memory, tag: int) -> int:
    """Return the first row whose key has that tag, -1 if there is none."""
    index, mask = memory[INDEX], memory[MASK]
    at = tag & mask
    while memory[index + at] != 0:
        if memory[index + at] >> 32 == tag:
            return (memory[index + at] & LOW) - 1
        at = (at + 1) & mask
    return -1


@kernel(inline=True, borrows=True)
def row_of(memory: Memory, data: Words, start: int, length: int, key: int) -> int:
    """Return the row of key number `key` of the block, -1 if it has none.

    It is most likely the one that was found when the block was looked up. Since then rows may have
    come and gone.
    """
    row = memory[FOUND + key]
    if row >= 0 and same_key(memory, data, start, length, row):
        return row
    return find(memory, data, start, length, memory[TAGS + key])


@kernel(inline=True, borrows=True)
def enter(memory: Memory, row: int, tag: int) -> None:
    """Enter `row` into the index, which does not have it."""
    index, mask = memory[INDEX], memory[MASK]
    at = tag & mask
    while memory[index + at] != 0:
        at = (at + 1) & mask
    memory[index + at] = (tag << 32) | (row + 1)


@kernel(borrows=True)
def new_row(memory: Memory, data: Words, start: int, length: int, tag: int) -> int:
    """Return a row that holds the key of `length` bytes at word `start`, which had none."""
    row = memory[FREE]
    if row >= 0:
        memory[FREE] = memory[memory[RECORDS] + row * WIDTH]
    else:
        row = memory[USED]
        if row >= memory[ROWS]:
            raise IndexError("no row is free: the policy did not make room")
        memory[USED] += 1
    record, words = memory[RECORDS] + row * WIDTH, (length + 7) >> 3
    memory[record + META] = length << 8
    tail = memory[TAILS] + memory[TAILS_USED]
    if length > INLINE:
        if memory[TAILS_USED] + words - HEAD_WORDS > memory[TAILS_SIZE]:
            raise IndexError("no room for a long key: the policy did not make it")
        memory[record + HEAD_WORDS] = memory[TAILS_USED]
        memory[TAILS_USED] += words - HEAD_WORDS
    for w in range(words):
        if length <= INLINE or w < HEAD_WORDS:
            memory[record + w] = data[start + w]
        else:
            memory[tail + w - HEAD_WORDS] = data[start + w]
    enter(memory, row, tag)
    return row


@kernel(borrows=True)
def free_row(memory: Memory, row: int, tag: int) -> None:
    """Forget the key in `row`, which has that tag and stands in no list any more."""
    index, mask = memory[INDEX], memory[MASK]
    at = tag & mask
    while memory[index + at] & LOW != row + 1:
        at = (at + 1) & mask
    # Close the gap: an entry behind it moves up unless it would then stand before its own place.
    gap = at
    memory[index + gap] = 0
    at = (gap + 1) & mask
    while memory[index + at] != 0:
        home = (memory[index + at] >> 32) & mask
        if (at - home) & mask >= (at - gap) & mask:
            memory[index + gap] = memory[index + at]
            memory[index + at] = 0
            gap = at
        at = (at + 1) & mask
    memory[memory[RECORDS] + row * WIDTH + META] = FREED
    memory[memory[RECORDS] + row * WIDTH] = memory[FREE]
    memory[FREE] = row


# Looking up one key waits for memory three times over. The keys of a block are looked up side by
# side, so that they wait together. Nothing is decided by that: what was read is then where it can
# be had fast.


@kernel(inline=True, borrows=True)
def warm(memory: Memory, data: Words, start: int, length: int, count: int) -> None:
    """Look up the next `count` keys, of one length, at most a block, as far as tags tell."""
    for i in range(count):
        memory[TAGS + i] = key_tag(memory, data, start + i * ((length + 7) >> 3), length)
    warm_index(memory, TAGS, count)
    read, records = 0, memory[RECORDS]
    for i in range(count):
        memory[FOUND + i] = likely_row(memory, memory[TAGS + i])
    for i in range(count):
        read ^= memory[records + max(memory[FOUND + i], 0) * WIDTH]
    memory[WARMED] = read


@kernel(inline=True, borrows=True)
def warm_index(memory: Memory, tags: int, count: int) -> None:
    """Read where the `count` tags from word `tags` on stand in the index."""
    index, mask, read = memory[INDEX], memory[MASK], 0
    for i in range(count):
        read ^= memory[index + (memory[tags + i] & mask)]
    memory[WARMED] = read


@kernel(inline=True, borrows=True)
def make_row(memory: Memory, data: Words, start: int, length: int, key: int, number: int) -> int:
    """Return a new row for key number `key` of the block, number `number` of the program."""
    row = new_row(memory, data, start, length, memory[TAGS + key])
    memory[NEW + memory[NEW_COUNT]] = number * NUMBER + row
    memory[NEW_COUNT] += 1
    return row


# --- Lists ---------------------------------------------------------------------------------------
#
# A list is kept as a log: its rows in the order in which they came, least recent first. An entry
# whose row has left the list, or has come to it again since, is stale and skipped.


@kernel(inline=True, borrows=True)
def where(memory: Memory, row: int) -> int:
    """Return where `row` is."""
    return memory[memory[RECORDS] + row * WIDTH + META] & 255


@kernel(inline=True, borrows=True)
def put(memory: Memory, row: int, place: int) -> None:
    """Note where `row` is."""
    at = memory[RECORDS] + row * WIDTH + META
    memory[at] = (memory[at] & ~255) | place


@kernel(inline=True, borrows=True)
def entries(memory: Memory, which: int) -> int:
    """Return the word of the first entry of list `which`."""
    return memory[ORDER] + (which - 1) * memory[ORDER_SIZE]


@kernel(inline=True, borrows=True)
def is_entry(memory: Memory, row: int, which: int, slot: int) -> bool:
    """Say whether entry `slot` of list `which`, which names `row`, is not stale."""
    at = memory[RECORDS] + row * WIDTH
    return ((memory[at + META] & PLACE) ^ which) | (memory[at + SLOT] ^ slot) == 0


@kernel(inline=True, borrows=True)
def warm_list(memory: Memory, which: int, first: int, end: int) -> None:
    """Read the rows of the entries of list `which` from `first` to `end`."""
    read = 0
    for slot in range(first, min(end, memory[ENDS + which])):
        read ^= memory[memory[RECORDS] + memory[entries(memory, which) + slot] * WIDTH + META]
    memory[WARMED] = read


@kernel(borrows=True)
def close_list(memory: Memory, which: int) -> None:
    """Make room at the end of list `which`: leave out what is stale."""
    order, end = entries(memory, which), 0
    for slot in range(memory[FIRSTS + which], memory[ENDS + which]):
        if slot % BLOCK == 0:
            warm_list(memory, which, slot, slot + BLOCK)
        row = memory[order + slot]
        if is_entry(memory, row, which, slot):
            memory[order + end] = row
            memory[memory[RECORDS] + row * WIDTH + SLOT] = end
            end += 1
    memory[FIRSTS + which] = 0
    memory[ENDS + which] = end


@kernel(inline=True, borrows=True)
def append(memory: Memory, row: int, which: int) -> None:
    """Put `row`, which counts in no list, at the recent end of list `which`."""
    if memory[ENDS + which] == memory[ORDER_SIZE]:
        close_list(memory, which)
    slot = memory[ENDS + which]
    memory[entries(memory, which) + slot] = row
    memory[memory[RECORDS] + row * WIDTH + SLOT] = slot
    memory[ENDS + which] = slot + 1
    memory[COUNTS + which] += 1


@kernel(inline=True, borrows=True)
def front(memory: Memory, which: int) -> int:
    """Return the number of the first entry of list `which` that is not stale, or the end."""
    order, slot, end = entries(memory, which), memory[FIRSTS + which], memory[ENDS + which]
    while slot < end and not is_entry(memory, memory[order + slot], which, slot):
        slot += 1
        if slot % BLOCK == 0:
            warm_list(memory, which, slot, slot + BLOCK)
    memory[FIRSTS + which] = slot
    return slot


@kernel(borrows=True)
def pack(memory: Memory, which: int, end: int, n: int) -> None:
    """Leave out what is stale before entry `end` of list `which`, if that is far for `n` rows.

    Else rows at the front that may not leave would have it all read again, time after time.
    """
    order, first, kept = entries(memory, which), memory[FIRSTS + which], end
    if end - first > 4 * (n + BLOCK):
        for slot in range(end - 1, first - 1, -1):
            row = memory[order + slot]
            if is_entry(memory, row, which, slot):
                kept -= 1
                memory[order + kept] = row
                memory[memory[RECORDS] + row * WIDTH + SLOT] = kept
        memory[FIRSTS + which] = kept


# --- Starting over, and moving -------------------------------------------------------------------


@kernel(borrows=True)
def empty(memory: Memory) -> None:
    """Forget everything."""
    for at in range(memory[INDEX], memory[INDEX] + memory[MASK] + 1):
        memory[at] = 0
    memory[USED] = 0
    memory[FREE] = -1
    memory[LOG_FIRST] = 0
    memory[LOG_END] = 0
    memory[HEAP_COUNT] = 0
    memory[TAILS_USED] = 0
    memory[TAKEN] = 0
    memory[PARKED] = 0
    memory[NEW_COUNT] = 0
    memory[TARGET] = 0  # the bits of 0.0
    for which in range(LISTS):
        memory[COUNTS + which] = 0
        memory[FIRSTS + which] = 0
        memory[ENDS + which] = 0


@kernel(borrows=True)
def move(old: Memory, memory: Memory) -> None:
    """Take over everything from `old` into a larger memory, which is empty.

    Rows keep their numbers; the tails of keys that are forgotten are left behind.
    """
    for at in (USED, FREE, TAKEN, HIGHEST, PARKED, TARGET):
        memory[at] = old[at]
    for at in range(old[USED] * WIDTH):
        memory[memory[RECORDS] + at] = old[old[RECORDS] + at]
    for at in range(old[TAKEN]):
        memory[memory[OUT] + at] = old[old[OUT] + at]
    for row in range(old[USED]):
        meta = memory[memory[RECORDS] + row * WIDTH + META]
        if meta & 255 == 0:
            continue
        if meta >> 8 > INLINE:
            words = ((meta >> 8) + 7) >> 3
            tail = memory[TAILS_USED]
            memory[TAILS_USED] += words - HEAD_WORDS
            memory[memory[RECORDS] + row * WIDTH + HEAD_WORDS] = tail
            for w in range(HEAD_WORDS, words):
                memory[memory[TAILS] + tail + w - HEAD_WORDS] = row_word(old, row, w)
        enter(memory, row, row_tag(memory, row))
    if memory[ORDER_SIZE] > 0:
        move_lists(old, memory)
    else:
        move_ranks(old, memory)


@kernel(borrows=True)
def move_lists(old: Memory, memory: Memory) -> None:
    """Take over the lists."""
    for which in range(1, LISTS):
        for slot in range(old[FIRSTS + which], old[ENDS + which]):
            row = old[entries(old, which) + slot]
            if is_entry(old, row, which, slot):
                append(memory, row, which)


@kernel(borrows=True)
def move_ranks(old: Memory, memory: Memory) -> None:
    """Take over the log and the heap."""
    for at in range(old[LOG_FIRST], old[LOG_END]):
        serial, row = old[old[LOG] + 2 * at], old[old[LOG] + 2 * at + 1]
        if is_logged(memory, row, serial):
            memory[memory[LOG] + 2 * memory[LOG_END]] = serial
            memory[memory[LOG] + 2 * memory[LOG_END] + 1] = row
            memory[LOG_END] += 1
    rebuild_heap(memory)


@kernel(borrows=True)
def live_tails(memory: Memory) -> int:
    """Return how many words of `tails` are in use."""
    words = 0
    for row in range(memory[USED]):
        meta = memory[memory[RECORDS] + row * WIDTH + META]
        if meta & 255 != 0 and meta >> 8 > INLINE:
            words += (((meta >> 8) + 7) >> 3) - HEAD_WORDS
    return words


# --- LRU: the log and the heap -------------------------------------------------------------------
#
# The log has (serial number, row) in the order of the numbers. An entry whose row has gone
# elsewhere, or has another rank by now, is stale and skipped.


@kernel(inline=True, borrows=True)
def is_logged(memory: Memory, row: int, serial: int) -> bool:
    """Say whether a log entry is not stale."""
    at = memory[RECORDS] + row * WIDTH
    return ((memory[at + META] & 255) ^ LOGGED) | (memory[at + HI] ^ serial) == 0


@kernel(inline=True, borrows=True)
def warm_log(memory: Memory, first: int, end: int) -> None:
    """Read the rows of the log entries from `first` to `end`."""
    read = 0
    for at in range(first, end):
        read ^= memory[memory[RECORDS] + memory[memory[LOG] + 2 * at + 1] * WIDTH + META]
    memory[WARMED] = read


@kernel(borrows=True)
def close_log(memory: Memory) -> None:
    """Make room in the log: leave out what is stale."""
    log, end = memory[LOG], 0
    for at in range(memory[LOG_FIRST], memory[LOG_END]):
        if at % BLOCK == 0:
            warm_log(memory, at, min(at + BLOCK, memory[LOG_END]))
        serial, row = memory[log + 2 * at], memory[log + 2 * at + 1]
        # No branch here: whether an entry is stale cannot be foretold.
        memory[log + 2 * end] = serial
        memory[log + 2 * end + 1] = row
        end += 1 if is_logged(memory, row, serial) else 0
    memory[LOG_FIRST] = 0
    memory[LOG_END] = end


# The heap is one of (serial number, minus the end token, row), lowest first, with stale
# entries too. Those of equal rank are in no order; `lru_take` puts them into that of their keys.


@kernel(inline=True, borrows=True)
def ranks_below(memory: Memory, row: int, hi: int, lo: int) -> bool:
    """Say whether the rank of `row` is below (`hi`, `lo`)."""
    at = memory[RECORDS] + row * WIDTH
    return memory[at + HI] < hi or (memory[at + HI] == hi and memory[at + LO] < lo)


@kernel(inline=True, borrows=True)
def heap_before(memory: Memory, at: int, hi: int, lo: int) -> bool:
    """Say whether the heap entry at word `at` ranks below (`hi`, `lo`)."""
    # No branch here: which of two entries ranks below cannot be foretold.
    return (memory[at] < hi) | ((memory[at] == hi) & (memory[at + 1] < lo))


@kernel(inline=True, borrows=True)
def heap_put(memory: Memory, at: int, hi: int, lo: int, row: int) -> None:
    """Write the heap entry at word `at`."""
    memory[at] = hi
    memory[at + 1] = lo
    memory[at + 2] = row


@kernel(borrows=True)
def heap_down(memory: Memory, at: int, hi: int, lo: int, row: int) -> None:
    """Put an entry in place of number `at`, or below, so that nothing below it ranks lower."""
    heap, count = memory[HEAP], memory[HEAP_COUNT]
    while ARITY * at + 1 < count:
        lowest = heap + 3 * (ARITY * at + 1)
        for number in range(ARITY * at + 2, min(ARITY * at + 1 + ARITY, count)):
            child = heap + 3 * number
            before = heap_before(memory, child, memory[lowest], memory[lowest + 1])
            lowest = child if before else lowest
        if not heap_before(memory, lowest, hi, lo):
            break
        heap_put(memory, heap + 3 * at, memory[lowest], memory[lowest + 1], memory[lowest + 2])
        at = (lowest - heap) // 3
    heap_put(memory, heap + 3 * at, hi, lo, row)


@kernel(borrows=True)
def heap_pop(memory: Memory) -> int:
    """Take the lowest entry out of the heap, which is not empty, and return its row."""
    heap = memory[HEAP]
    row = memory[heap + 2]
    memory[HEAP_COUNT] -= 1
    last = heap + 3 * memory[HEAP_COUNT]
    if last > heap:
        heap_down(memory, 0, memory[last], memory[last + 1], memory[last + 2])
    return row


@kernel(borrows=True)
def rebuild_heap(memory: Memory) -> None:
    """Make the heap anew from the rows that are in it, without anything stale."""
    heap, count = memory[HEAP], 0
    for row in range(memory[USED]):
        at = memory[RECORDS] + row * WIDTH
        if memory[at + META] & 255 == HEAPED:
            heap_put(memory, heap + 3 * count, memory[at + HI], memory[at + LO], row)
            count += 1
    memory[HEAP_COUNT] = count
    for number in range((count - 2) // ARITY, -1, -1):
        at = heap + 3 * number
        heap_down(memory, number, memory[at], memory[at + 1], memory[at + 2])


@kernel(borrows=True)
def heap_push(memory: Memory, row: int) -> None:
    """Put `row` into the heap, by its rank."""
    put(memory, row, HEAPED)
    if memory[HEAP_COUNT] == memory[HEAP_SIZE]:
        rebuild_heap(memory)
        return
    heap, at = memory[HEAP], memory[HEAP_COUNT]
    memory[HEAP_COUNT] += 1
    record = memory[RECORDS] + row * WIDTH
    hi, lo = memory[record + HI], memory[record + LO]
    while at > 0:
        parent = heap + 3 * ((at - 1) // ARITY)
        if not ranks_below(memory, row, memory[parent], memory[parent + 1]):
            break
        heap_put(memory, heap + 3 * at, memory[parent], memory[parent + 1], memory[parent + 2])
        at = (at - 1) // ARITY
    heap_put(memory, heap + 3 * at, hi, lo, row)


@kernel(inline=True, borrows=True)
def is_heaped(memory: Memory, row: int, hi: int, lo: int) -> bool:
    """Say whether a heap entry is not stale."""
    at = memory[RECORDS] + row * WIDTH
    heaped = memory[at + META] & 255 == HEAPED
    return heaped and memory[at + HI] == hi and memory[at + LO] == lo


# --- LRU -----------------------------------------------------------------------------------------
#
# Every key with a place has a rank, and the lowest leaves first. A rank that is the highest when
# it is given needs no sorting: it goes to the end of the log. All others go into the heap.


@kernel(inline=True, borrows=True)
def lru_last(memory: Memory, row: int, serial: int) -> None:
    """Give `row` the highest rank."""
    at = memory[RECORDS] + row * WIDTH
    if memory[at + META] & 255 == PARKED_ROW:
        memory[PARKED] -= 1
    memory[at + META] = (memory[at + META] & ~255) | LOGGED
    memory[at + HI] = serial
    memory[at + LO] = 0
    if memory[LOG_END] == memory[LOG_SIZE]:
        close_log(memory)
    entry = memory[LOG] + 2 * memory[LOG_END]
    memory[entry] = serial
    memory[entry + 1] = row
    memory[LOG_END] += 1


@kernel(inline=True, borrows=True)
def lru_at(memory: Memory, row: int, hi: int, lo: int) -> None:
    """Give `row` the rank (`hi`, `lo`). One that is parked stays so."""
    at = memory[RECORDS] + row * WIDTH
    memory[at + HI] = hi
    memory[at + LO] = lo
    if memory[at + META] & 255 != PARKED_ROW:
        heap_push(memory, row)


@kernel(inline=True, borrows=True)
def lru_run(memory: Memory, data: Words, words: int, length: int) -> None:
    """Run a program of `words` words, whose keys follow it, all of `length` bytes or MIXED."""
    at, start, key, number = 0, words, 0, 0
    memory[NEW_COUNT] = 0
    while at < words:
        kind, count, hi = data[at] & 255, data[at] >> 8, data[at + 1]
        at += 2
        for i in range(count):
            size = length
            if length == MIXED:
                size = data[start]
                start += 1
                memory[TAGS + key] = key_tag(memory, data, start, size)
                memory[FOUND + key] = likely_row(memory, memory[TAGS + key])
            elif key == 0:
                left = (len(data) - start) // ((length + 7) >> 3)
                warm(memory, data, start, length, min(left, BLOCK))
            row = row_of(memory, data, start, size, key)
            if row < 0 and kind in (LAST, AT):
                row = make_row(memory, data, start, size, key, number)
            lo = 0
            if kind in (AT, JOIN):
                lo = data[at]
                at += 1
            if row >= 0:
                if kind in (TOUCH, LAST):
                    lru_last(memory, row, hi + i)
                elif kind == AT or (kind == JOIN and ranks_below(memory, row, hi, lo)):
                    lru_at(memory, row, hi, lo)
                elif kind == FORGET:
                    if where(memory, row) == PARKED_ROW:
                        memory[PARKED] -= 1
                    free_row(memory, row, memory[TAGS + key])
                elif kind == READY and where(memory, row) == PARKED_ROW:
                    memory[PARKED] -= 1
                    heap_push(memory, row)
            start += (size + 7) >> 3
            key = (key + 1) % BLOCK
            number += 1


@kernel(borrows=True)
def sort_by_key(memory: Memory, first: int, count: int) -> None:
    """Sort the rows in the `count` words from `first` on by their keys (a shell sort)."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            row, at = memory[first + i], i
            while at >= gap and key_less(memory, row, memory[first + at - gap]):
                memory[first + at] = memory[first + at - gap]
                at -= gap
            memory[first + at] = row
        gap //= 3


# The rows that will leave next are *taken* ahead of time: they stand in `out`, lowest rank first,
# and nowhere else. A row that gets another rank is taken no more; should one get a rank below that
# of the last that is taken, all go back.


@kernel(inline=True, borrows=True)
def lru_settle(memory: Memory, gone: int) -> None:
    """Evict the first `gone` rows in `out`, and park those that are said to be busy."""
    taken, out = memory[TAKEN], memory[OUT]
    kept = 0
    for first in range(0, taken, BLOCK):
        count = min(taken - first, BLOCK)
        if first < gone:
            for i in range(count):
                memory[LEAVING_TAGS + i] = row_tag(memory, memory[out + first + i] & ROW)
            warm_index(memory, LEAVING_TAGS, count)
        for i in range(count):
            noted = memory[out + first + i]
            row = noted & ROW
            if where(memory, row) != TAKEN_ROW:
                continue
            if noted & PARK:
                put(memory, row, PARKED_ROW)
                memory[PARKED] += 1
            elif first + i < gone:
                free_row(memory, row, memory[LEAVING_TAGS + i])
            else:
                memory[out + kept] = row
                kept += 1
    memory[TAKEN] = kept


@kernel(borrows=True)
def lru_put_back(memory: Memory, count: int) -> None:
    """Put the rows in `out` from number `count` on back into the order."""
    for i in range(count, memory[TAKEN]):
        heap_push(memory, memory[memory[OUT] + i])
    memory[TAKEN] = count


@kernel(inline=True, borrows=True)
def drop_stale(memory: Memory) -> None:
    """Take stale entries off the top of the heap."""
    heap = memory[HEAP]
    while memory[HEAP_COUNT] > 0 and not is_heaped(
        memory, memory[heap + 2], memory[heap], memory[heap + 1]
    ):
        heap_pop(memory)


@kernel(inline=True, borrows=True)
def lru_review(memory: Memory, n: int) -> None:
    """Leave in `out` those that are still the next to leave, and not many more than `n`."""
    taken, out, heap, kept = memory[TAKEN], memory[OUT], memory[HEAP], 0
    for i in range(taken):
        row = memory[out + i]
        if where(memory, row) == TAKEN_ROW:
            memory[out + kept] = row
            kept += 1
    memory[TAKEN] = kept
    if kept > 0:
        drop_stale(memory)
        last = memory[out + kept - 1]
        if memory[HEAP_COUNT] > 0 and not ranks_below(memory, last, memory[heap], memory[heap + 1]):
            lru_put_back(memory, 0)
        elif kept > n + AHEAD:
            lru_put_back(memory, n + AHEAD)


@kernel(inline=True, borrows=True)
def lru_take(memory: Memory, n: int) -> None:
    """Move the rows of lowest rank to `out`, until there are `n` or no more to move."""
    taken, out, log, heap = memory[TAKEN], memory[OUT], memory[LOG], memory[HEAP]
    warmed = memory[LOG_FIRST]
    while taken < n:
        drop_stale(memory)
        first, end = memory[LOG_FIRST], memory[LOG_END]
        while True:
            if first == warmed:
                warmed = min(first + BLOCK, end)
                warm_log(memory, first, warmed)
            if first == end or is_logged(
                memory, memory[log + 2 * first + 1], memory[log + 2 * first]
            ):
                break
            first += 1
        memory[LOG_FIRST] = first
        heaped = memory[HEAP_COUNT] > 0
        if first == end and not heaped:
            break
        # The number of a logged row is its alone, so the first part of the rank decides.
        if first < end and not (heaped and memory[heap] < memory[log + 2 * first]):
            row = memory[log + 2 * first + 1]
            memory[LOG_FIRST] = first + 1
            put(memory, row, TAKEN_ROW)
            memory[out + taken] = row
            taken += 1
            continue
        hi, lo, end = memory[heap], memory[heap + 1], taken
        while memory[HEAP_COUNT] > 0 and memory[heap] == hi and memory[heap + 1] == lo:
            row = heap_pop(memory)
            if is_heaped(memory, row, hi, lo):
                put(memory, row, TAKEN_ROW)
                memory[out + end] = row
                end += 1
        sort_by_key(memory, out + taken, end - taken)  # lru/equal-rank-by-key-order
        while end > n:
            end -= 1
            heap_push(memory, memory[out + end])
        taken = end
    memory[TAKEN] = taken


@kernel(borrows=True)
def lru_step(
    memory: Memory, data: Words, words: int, length: int, gone: int, n: int, more: int
) -> int:
    """Evict rows in `out`, run a program, and take the rows that will leave next.

    Args:
        memory: the memory.
        data: the program, and its keys.
        words: how many words the program has.
        length: of each key in bytes, or MIXED.
        gone: the first so many rows in `out` have left, except for those that are to be parked.
        n: so many rows are to stand in `out` if there are as many, none need be if it is 0.
        more: so many more are taken if there are too few.

    Returns:
        How many rows stand in `out`.
    """
    lru_settle(memory, gone)
    lru_run(memory, data, words, length)
    if n > 0:
        lru_review(memory, n)
        if memory[TAKEN] < n:
            lru_take(memory, n + more)
        if memory[TAKEN] > 0:
            last = memory[memory[OUT] + memory[TAKEN] - 1]
            memory[HIGHEST] = memory[memory[RECORDS] + last * WIDTH + HI]
    return memory[TAKEN]


@kernel(borrows=True)
def lru_unpark(memory: Memory) -> None:
    """Give all parked rows their places again."""
    for row in range(memory[USED]):
        if where(memory, row) == PARKED_ROW:
            heap_push(memory, row)
    memory[PARKED] = 0


# --- ARC -----------------------------------------------------------------------------------------


@kernel(inline=True, borrows=True)
def raised(target: float, hit: int, other: int, capacity: int) -> float:
    """Return the target after a hit in B1, of `hit` ghosts, while B2 has `other`."""
    return min(target + max(1.0, other / hit), float(capacity))  # arc/b1-hit-raises-target


@kernel(inline=True, borrows=True)
def lowered(target: float, hit: int, other: int) -> float:
    """Return the target after a hit in B2, of `hit` ghosts, while B1 has `other`."""
    return max(target - max(1.0, other / hit), 0.0)  # arc/b2-hit-lowers-target


@kernel(inline=True, borrows=True)
def gives(size: int, target: float, more_t1: bool, more_t2: bool, falls_back: bool) -> int:
    """Return the list that gives the next victim, T1 or T2, or 0 if none does.

    Args:
        size: the size of T1 without the victims chosen so far, busy chunks included.
        target: what it should be.
        more_t1: whether T1 has another chunk that may leave.
        more_t2: the same of T2.
        falls_back: whether T1 gives when it should not but T2 has nothing to give.
    """
    at_target = size >= int(target)  # arc/t1-gives-at-target
    if more_t1 and (at_target or (falls_back and not more_t2)):
        return T1
    return T2 if more_t2 else 0  # arc/t2-gives-below-target


@kernel(inline=True, borrows=True)
def arc_move(memory: Memory, row: int, old: int, new: int) -> None:
    """Move `row` from list `old` to the recent end of list `new`."""
    memory[COUNTS + old] -= 1
    append(memory, row, new)
    put(memory, row, (where(memory, row) & ~PLACE) | new)


@kernel(inline=True, borrows=True)
def target_in(memory: Any) -> float:
    """Return the target, the double that the word of the header holds."""
    return memory[TARGET : TARGET + 1].view(np.float64)[0]  # type: ignore[no-any-return]


@kernel(inline=True, borrows=True)
def set_target(memory: Any, target: float) -> None:
    """Set the target."""
    memory[TARGET : TARGET + 1].view(np.float64)[0] = target


@kernel(inline=True, borrows=True)
def arc_adapt(memory: Memory, row: int) -> None:
    """Move the target, for `row` is a ghost that was hit, and renew it."""
    target = target_in(memory)
    place, b1, b2 = where(memory, row) & PLACE, memory[COUNTS + B1], memory[COUNTS + B2]
    if place == B1:
        set_target(memory, raised(target, b1, b2, memory[CAPACITY]))
    else:
        set_target(memory, lowered(target, b2, b1))
    arc_move(memory, row, place, place)  # arc/ghost-hit-renews


@kernel(inline=True, borrows=True)
def arc_touch(memory: Memory, row: int) -> None:
    """Use the key of `row`."""
    flags = where(memory, row)
    if flags & PLACE >= B1:
        arc_adapt(memory, row)
    elif flags & PENDING:
        arc_move(memory, row, flags & PLACE, flags & PLACE)  # arc/pending-stays-in-t1
    else:
        arc_move(memory, row, flags & PLACE, T2)  # arc/second-use-promotes, arc/use-renews-t2


@kernel(inline=True, borrows=True)
def arc_leave(memory: Memory, row: int) -> None:
    """Turn `row`, which was evicted, into a ghost."""
    place = where(memory, row) & PLACE
    arc_move(memory, row, place, place + B1 - T1)  # arc/victim-becomes-ghost
    put(memory, row, place + B1 - T1)


@kernel(inline=True, borrows=True)
def arc_trim(memory: Memory) -> None:
    """Drop the ghosts that are too many (`arc/ghosts-trimmed-to-capacity`)."""
    for ghosts in (B1, B2):
        while memory[COUNTS + ghosts] > memory[CAPACITY]:
            count = min(memory[COUNTS + ghosts] - memory[CAPACITY], BLOCK)
            warm_list(memory, ghosts, memory[FIRSTS + ghosts], memory[FIRSTS + ghosts] + count)
            for i in range(count):
                memory[LEAVING + i] = memory[entries(memory, ghosts) + front(memory, ghosts)]
                memory[FIRSTS + ghosts] += 1
            for i in range(count):
                memory[LEAVING_TAGS + i] = row_tag(memory, memory[LEAVING + i])
            warm_index(memory, LEAVING_TAGS, count)
            for i in range(count):
                free_row(memory, memory[LEAVING + i], memory[LEAVING_TAGS + i])
            memory[COUNTS + ghosts] -= count


@kernel(borrows=True)
def arc_settle(memory: Memory) -> None:
    """Turn the rows in `out` into ghosts."""
    taken, out = memory[TAKEN], memory[OUT]
    memory[TAKEN] = 0
    for first in range(0, taken, BLOCK):
        count, read = min(taken - first, BLOCK), 0
        for i in range(first, first + count):
            row = memory[out + i]
            read ^= memory[memory[RECORDS] + row * WIDTH + META]
        memory[WARMED] = read
        for i in range(first, first + count):
            arc_leave(memory, memory[out + i])
        arc_trim(memory)


@kernel(inline=True, borrows=True)
def arc_run(memory: Memory, data: Words, words: int, length: int) -> None:
    """Run a program of `words` words, whose keys follow it, all of `length` bytes or MIXED."""
    at, start, key, number = 0, words, 0, 0
    leave = leaves = 0
    memory[NEW_COUNT] = 0
    while at < words:
        kind, count, hi = data[at] & 255, data[at] >> 8, data[at + 1]
        at += 2
        if kind == LEAVE:
            leave, at = at, at + 2 * hi
            leaves = at
        for _ in range(count):
            size = length
            if length == MIXED:
                size = data[start]
                start += 1
                memory[TAGS + key] = key_tag(memory, data, start, size)
                memory[FOUND + key] = likely_row(memory, memory[TAGS + key])
            elif key == 0:
                left = (len(data) - start) // ((length + 7) >> 3)
                warm(memory, data, start, length, min(left, BLOCK))
            while leave < leaves and data[leave] == number:
                arc_leave(memory, data[leave + 1])
                arc_trim(memory)
                leave += 2
            row = row_of(memory, data, start, size, key)
            if kind == INSERT:  # arc/insert-into-t1
                if row < 0:
                    row = make_row(memory, data, start, size, key, number)
                    append(memory, row, T1)
                else:
                    place = where(memory, row) & PLACE
                    if place >= B1:
                        memory[NEW + memory[NEW_COUNT]] = number * NUMBER + row
                        memory[NEW_COUNT] += 1
                    arc_move(memory, row, place, T1)  # arc/insert-takes-ghost
                put(memory, row, T1 | (PENDING | BUSY if hi else 0))
            elif row >= 0:
                place = where(memory, row) & PLACE
                if kind == TOUCH:
                    arc_touch(memory, row)
                elif kind == MISS and place >= B1:  # arc/miss-adapts
                    arc_adapt(memory, row)
                elif kind == FINISH and place < B1:
                    # arc/reuse-promotes, arc/store-is-not-reuse
                    arc_move(memory, row, place, T2 if data[at] else place)
                elif kind == FORGET and place < B1:  # arc/remove-leaves-no-ghost
                    memory[COUNTS + place] -= 1
                    free_row(memory, row, memory[TAGS + key])
                elif kind == READY:
                    put(memory, row, where(memory, row) & ~(PENDING | BUSY))
            if kind == FINISH:
                at += 1
            start += (size + 7) >> 3
            key = (key + 1) % BLOCK
            number += 1
    while leave < leaves:
        arc_leave(memory, data[leave + 1])
        arc_trim(memory)
        leave += 2


@kernel(inline=True, borrows=True)
def arc_next(memory: Memory, which: int, slot: int) -> int:
    """Return the first entry of a list from `slot` on whose row may leave, or the list's end."""
    order, end = entries(memory, which), memory[ENDS + which]
    while slot < end:
        if slot % BLOCK == 0:
            warm_list(memory, which, slot, slot + BLOCK)
        row = memory[order + slot]
        if is_entry(memory, row, which, slot) and where(memory, row) & PASSED_OVER == 0:
            break
        slot += 1
    return slot


@kernel(borrows=True)
def arc_select(memory: Memory, n: int, falls_back: bool) -> int:
    """Choose `n` victims and note them in `out`; return how many were found.

    Nothing leaves before `arc_settle`. If fewer than `n` were found, none is noted.
    """
    out, found, target, size = memory[OUT], 0, target_in(memory), memory[COUNTS + T1]
    for which in (T1, T2):
        slot = front(memory, which)
        warm_list(memory, which, slot, slot + min(n, BLOCK))
    from_t1 = arc_next(memory, T1, memory[FIRSTS + T1])
    from_t2 = arc_next(memory, T2, memory[FIRSTS + T2])
    while found < n:
        # arc/each-victim-anew, arc/size-counts-busy-chunks
        more_t1, more_t2 = from_t1 < memory[ENDS + T1], from_t2 < memory[ENDS + T2]
        which = gives(size, target, more_t1, more_t2, falls_back)
        if which == T1:
            memory[out + found] = memory[entries(memory, T1) + from_t1]
            from_t1 = arc_next(memory, T1, from_t1 + 1)  # arc/oldest-of-its-list-first
            size -= 1
        elif which == T2:
            memory[out + found] = memory[entries(memory, T2) + from_t2]
            from_t2 = arc_next(memory, T2, from_t2 + 1)
        else:
            break
        found += 1
    pack(memory, T1, from_t1, n)
    pack(memory, T2, from_t2, n)
    memory[TAKEN] = n if found == n else 0  # evict/none-changes-nothing
    return found


@kernel(borrows=True)
def arc_step(memory: Memory, data: Words, words: int, length: int, n: int, falls_back: bool) -> int:
    """Evict what is in `out`, run a program, choose `n` victims; return how many were found."""
    arc_settle(memory)
    arc_run(memory, data, words, length)
    return arc_select(memory, n, falls_back)


@kernel(borrows=True)
def arc_peek(memory: Memory, n1: int, n2: int) -> int:
    """Note in `out` the next rows that are not passed over, `n1` of T1 and then `n2` of T2.

    Returns:
        How many they are, and NUMBER times how many of them are in T1.
    """
    out, found, in_t1, passed = memory[OUT], 0, 0, 0
    for which in (T1, T2):
        goal = found + (n1 if which == T1 else n2)
        slot = front(memory, which)
        warm_list(memory, which, slot, slot + min(goal - found, BLOCK))
        while found < goal and slot < memory[ENDS + which]:
            if slot % BLOCK == 0:
                warm_list(memory, which, slot, slot + BLOCK)
            row = memory[entries(memory, which) + slot]
            if is_entry(memory, row, which, slot):
                if where(memory, row) & PASSED_OVER:
                    passed += 1
                else:
                    memory[out + found] = row
                    found += 1
            slot += 1
        pack(memory, which, slot, goal)
        if which == T1:
            in_t1 = found
    memory[PASSED] = passed
    return in_t1 * NUMBER + found


@kernel(borrows=True)
def arc_flag(memory: Memory, count: int) -> None:
    """Note of the first `count` rows in `out` whether they are to be passed over."""
    for i in range(count):
        noted = memory[memory[OUT] + i]
        row = noted & ROW
        if noted & PARK:
            put(memory, row, where(memory, row) | BUSY)
        elif noted & KEEP:
            put(memory, row, where(memory, row) | KEPT)


@kernel(borrows=True)
def arc_doubt(memory: Memory) -> None:
    """Forget which rows were found busy."""
    for which in (T1, T2):
        for slot in range(memory[FIRSTS + which], memory[ENDS + which]):
            row = memory[entries(memory, which) + slot]
            if is_entry(memory, row, which, slot):
                put(memory, row, where(memory, row) & ~BUSY)


@kernel(borrows=True)
def arc_unkeep(memory: Memory, count: int) -> None:
    """No longer pass over the first `count` rows in `out` for being protected."""
    for i in range(count):
        row = memory[memory[OUT] + i] & ROW
        put(memory, row, where(memory, row) & ~KEPT)


# --- The reuse filter ----------------------------------------------------------------------------
#
# One list of keys, each with the number of times it was seen; at most CAPACITY of them.

TRACKED = 1  # the list


@kernel(inline=True, borrows=True)
def filter_see(memory: Memory, data: Words, start: int, length: int, key: int) -> None:
    """See key number `key` of the block, at word `start`, once more."""
    row = row_of(memory, data, start, length, key)
    if row < 0:
        if memory[COUNTS + TRACKED] >= memory[CAPACITY]:  # reuse-filter/tracker-drops-least-recent
            oldest = memory[entries(memory, TRACKED) + front(memory, TRACKED)]
            memory[COUNTS + TRACKED] -= 1
            free_row(memory, oldest, row_tag(memory, oldest))
        row = new_row(memory, data, start, length, memory[TAGS + key])
        put(memory, row, TRACKED)
        memory[memory[RECORDS] + row * WIDTH + COUNT] = 0
    else:
        memory[COUNTS + TRACKED] -= 1
    append(memory, row, TRACKED)  # reuse-filter/repeat-renews
    memory[memory[RECORDS] + row * WIDTH + COUNT] += 1


@kernel(inline=True, borrows=True)
def filter_ask(
    memory: Memory, data: Words, start: int, length: int, key: int, threshold: int
) -> bool:
    """Say whether key number `key` of the block was seen `threshold` times or more."""
    row = row_of(memory, data, start, length, key)
    return row >= 0 and memory[memory[RECORDS] + row * WIDTH + COUNT] >= threshold


@kernel(borrows=True)
def filter_step(memory: Memory, data: Words, words: int, length: int, threshold: int) -> int:
    """Run a program; note in `out`, for each key asked for, whether it was seen often enough.

    Returns:
        How many keys were asked for.
    """
    at, start, key, asked = 0, words, 0, 0
    while at < words:
        kind, count = data[at] & 255, data[at] >> 8
        at += 2
        for _ in range(count):
            size = length
            if length == MIXED:
                size = data[start]
                start += 1
                memory[TAGS + key] = key_tag(memory, data, start, size)
                memory[FOUND + key] = likely_row(memory, memory[TAGS + key])
            elif key == 0:
                left = (len(data) - start) // ((length + 7) >> 3)
                warm(memory, data, start, length, min(left, BLOCK))
            if kind == SEE:
                filter_see(memory, data, start, size, key)
            else:
                enough = filter_ask(memory, data, start, size, key, threshold)
                memory[memory[OUT] + asked] = 1 if enough else 0
                asked += 1
            start += (size + 7) >> 3
            key = (key + 1) % BLOCK
    return asked
