"""The fast path against vLLM's releases, libcachesim and the reference: `make bench`."""
