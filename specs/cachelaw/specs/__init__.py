"""The contract as data: what the specs say in prose, in a form that programs can read."""
