"""Reports: what a run found, as plain data, and written down for people and for programs.

A run ends in plain data (`data.py`), whose form is `specs/cachelaw/specs/schemas/report-1.json`.
Every other module here turns that data into one form, and knows nothing of subjects.
"""
