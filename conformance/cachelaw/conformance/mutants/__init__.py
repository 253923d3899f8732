"""The suite on trial: wrong policies, and whether the suite finds each of them out.

- `zoo`: wrong on purpose, one short class each, by what they break;
- `mutate`, `generated`: every first-order mutation of the reference's sources;
- `trial`: what the suite says of one of them, and how soon;
- `equivalence`: that one which nothing finds out cannot be told from the reference;
- `dropped`: what passes if a clause is not judged;
- `python -m cachelaw.conformance.mutants` tries all of them: the kill matrix.
"""
