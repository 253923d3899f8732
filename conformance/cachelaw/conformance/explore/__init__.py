"""The model checker: every state of the reference at small scope, and what holds there.

`search.py` walks any machine breadth first. The machines are `calls.py` (every call that the
protocol could make, in any order), `programs.py` (the protocol itself) and `accesses.py` (one key
at a time: the textbook's ARC and the filter's tracker). `invariants.py` says what must hold in a
state, `transitions.py` what must hold of a step, `products.py` sets two machines side by side.
"""
