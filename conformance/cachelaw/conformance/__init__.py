"""The suite that certifies anybody's eviction policy against the contract of vLLM."""
