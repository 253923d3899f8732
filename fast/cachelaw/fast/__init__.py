"""The optimized implementation. It holds no code yet; the reference is `cachelaw.reference`."""
