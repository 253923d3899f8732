"""The golden vectors: right policies pass them, the wrong one of each fails where it says."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cachelaw.conformance.laws import LAWS
from cachelaw.conformance.mutants.zoo import classes
from cachelaw.reference import arc, lru
from cachelaw.reference.cores import World, core_of
from cachelaw.reference.editions import EDITIONS, V030, edition_named
from cachelaw.specs.registry import CLAUSES

ROOT = Path(__file__).parents[2]
SPECS = ROOT / "specs" / "cachelaw" / "specs"
VECTORS = SPECS / "vectors"
RUNNER = ROOT / "specs" / "run_vectors.py"
GUIDE = ROOT / "specs" / "INTERPRETING.md"
ZOO = "cachelaw.conformance.mutants.zoo"

Vector = dict[str, Any]


def _loaded(name: str, path: Path) -> ModuleType:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


make = _loaded("cachelaw_make_vectors", Path(__file__).with_name("make.py"))
run = make.runner()


@cache
def every() -> tuple[Vector, ...]:
    return tuple(run.load_vectors(VECTORS))


def files() -> list[Path]:
    return [path for path in sorted(VECTORS.rglob("*.json")) if "itf" not in path.parts]


def traces() -> list[Path]:
    return sorted((VECTORS / "itf").glob("*.itf.json"))


# --- What the files say --------------------------------------------------------------------------


def test_every_clause_with_a_law_has_a_vector_or_a_reason() -> None:
    told = {vector["clause"] for vector in every()}
    assert set(make.NO_VECTOR) <= set(CLAUSES)
    assert told.isdisjoint(make.NO_VECTOR)
    assert set(LAWS) <= told | set(make.NO_VECTOR)
    assert told <= set(LAWS)


WITHOUT = {
    # There a policy hears of no transfer.
    "lru/transfer-is-no-use": {"v0.19", "v0.20", "v0.22"},
    # The zoo has no filters of that form that break them.
    "reuse-filter/empty-offer-delegated": {"v0.20"},
    "reuse-filter/repeat-renews": {"v0.20"},
}
"""Editions in which a clause has no vector."""


def test_every_edition_of_a_clause_has_a_vector() -> None:
    for name in {vector["clause"] for vector in every()}:
        has = {e for vector in every() if vector["clause"] == name for e in vector["editions"]}
        holds = {edition.name for edition in EDITIONS if CLAUSES[name].holds_in(edition.name)}
        assert has == holds - WITHOUT.get(name, set()), name


def test_vectors_describe_themselves() -> None:
    seen = Counter(vector["id"] for vector in every())
    assert set(seen.values()) == {1}
    for path in files():
        for vector in json.loads(path.read_text(encoding="utf-8")):
            name = vector["clause"]
            assert path.relative_to(VECTORS) == Path(f"{name}.json")
            assert vector["id"] == make.identity(vector)
            assert vector["statement"] == CLAUSES[name].statement
            assert vector["edition"] == vector["editions"][-1]
            assert all(CLAUSES[name].holds_in(edition) for edition in vector["editions"])
            assert CLAUSES[name].profile in ("contract", vector["profile"])
            assert vector["wrong"]["step"] == len(vector["steps"]) - 1
            assert ("bug" in vector) == (vector["kind"] == "known-bug")
            assert ("other" in vector) == (vector["kind"] == "edition-difference")


def test_determined_profiles_have_exact_answers() -> None:
    for vector in every():
        if vector["profile"] in ("lru", "arc"):
            for step in vector["steps"]:
                assert ("answer" in step) == (step["call"] == "evict")
                assert isinstance(step.get("answer"), list | None), vector["id"]


def test_files_are_small() -> None:
    assert sum(path.stat().st_size for path in VECTORS.rglob("*.json")) < 3_000_000


def test_guide_lists_the_clauses_without_vectors() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert make.guide(text) == text


def test_guide_names_every_call_and_part() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for vector in every():
        for part in vector:
            assert f"`{part}`" in text
        for step in vector["steps"]:
            assert f"`{step['call']}" in text


# --- The schema ----------------------------------------------------------------------------------

TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
KNOWN = {
    *("type", "const", "enum", "pattern", "minLength", "minimum", "minItems", "uniqueItems"),
    *("items", "required", "properties", "additionalProperties", "oneOf", "$ref"),
    *("$schema", "$defs", "title", "description"),
}
"""The words of JSON Schema that the validator below understands."""


def objections(value: Any, schema: Any, root: Any, at: str = "") -> Iterator[str]:
    """Yield what keeps `value` from fitting the schema; enough of JSON Schema for ours."""
    if isinstance(schema, bool):
        if not schema:
            yield f"{at}: nothing may stand here"
        return
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        yield from objections(value, root["$defs"][schema["$ref"].split("/")[-1]], root, at)
    if "type" in schema and not TYPES[schema["type"]](value):
        yield f"{at}: not of type {schema['type']}"
        return
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{at}: not {schema['const']}"
    if "enum" in schema and not any(_same(value, other) for other in schema["enum"]):
        yield f"{at}: none of {schema['enum']}"
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{at}: does not match"
        if len(value) < schema.get("minLength", 0):
            yield f"{at}: too short"
    if TYPES["integer"](value) and value < schema.get("minimum", value):
        yield f"{at}: too small"
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{at}: too few"
        if schema.get("uniqueItems") and len({json.dumps(v) for v in value}) < len(value):
            yield f"{at}: twice the same"
        for number, item in enumerate(value):
            yield from objections(item, schema.get("items", True), root, f"{at}/{number}")
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{at}: no {name}"
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name, item in value.items():
            yield from objections(item, properties.get(name, others), root, f"{at}/{name}")
    if "oneOf" in schema:
        found = [list(objections(value, one, root, at)) for one in schema["oneOf"]]
        if sum(not reasons for reasons in found) != 1:
            yield f"{at}: fits {sum(not reasons for reasons in found)} of the choices"


def _same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)


@cache
def schema() -> Any:
    return json.loads((SPECS / "schemas" / "vector-1.json").read_text(encoding="utf-8"))


def test_every_file_fits_the_schema() -> None:
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for path in files():
        found = objections(json.loads(path.read_text(encoding="utf-8")), schema(), schema())
        assert list(found) == [], path


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"editions": []},
        {"editions": ["v0.18"]},
        {"id": "lru/something"},
        {"colour": "red"},
        {"keys": {"1": "xyz"}},
        {"steps": [{"call": "evict", "n": -1, "protected": [], "answer": None}]},
        {"steps": [{"call": "evict", "n": 1, "protected": []}]},
        {"steps": [{"call": "insert", "key": 1}]},
        {"steps": [{"call": "put", "key": 1}]},
        {"scope": {"capacity": 0, "keys": 1, "groups": 1, "events": 1}},
    ],
    ids=str,
)
def test_the_schema_turns_away(change: dict[str, Any]) -> None:
    assert list(objections([{**every()[0], **change}], schema(), schema()))


# --- Who passes ----------------------------------------------------------------------------------


def test_the_reference_of_every_edition_passes() -> None:
    runs = 0
    for vector in every():
        for edition in map(edition_named, vector["editions"]):
            module = importlib.import_module(edition.module)
            profile = vector["profile"]
            if profile == "reuse-filter":
                builds = [module.FilterReusedOffloadingManager]
            elif profile == "contract":
                # Up to v0.27 ARC refuses although enough is eligible: known bug B01.
                refuses = edition < V030 and vector["clause"] == "evict/none-only-when-short"
                builds = [module.LRU] if refuses else [module.LRU, module.ARC]
            else:
                builds = [getattr(module, profile.upper())]
            for build in builds:
                assert run.run_vector(vector, build, edition.name) is None, vector["id"]
                runs += 1
    assert runs > 1_000


@pytest.mark.parametrize("name", ["Fifo", "Recent", "Lfu", "Clock", "Queue"])
def test_right_policies_of_any_order_keep_the_contract(name: str) -> None:
    policy = classes()[name]
    for vector in every():
        if vector["profile"] == "contract":
            for edition in vector["editions"]:
                assert run.run_vector(vector, policy, edition) is None, vector["id"]


def test_each_wrong_policy_fails_where_its_vector_says() -> None:
    filters = {wrong.name: wrong.made for wrong, _ in make.filter_wrongs()}
    for vector in every():
        said = vector["wrong"]
        name = said["policy"]
        if vector["profile"] == "reuse-filter":
            build = filters[name]
        else:
            build = make.wrong_named(name).build
        failure = run.run_vector(vector, build)
        assert failure is not None, vector["id"]
        assert (failure.step, failure.result) == (said["step"], said["result"]), vector["id"]


def test_every_wrong_policy_of_the_zoo_fails_a_vector() -> None:
    """Of those that break a clause with vectors; the others need what vectors leave out."""
    survivors = []
    for wrong in make.zoo():
        if wrong.breaks in make.NO_VECTOR:
            continue
        about = [v for v in every() if v["clause"] == wrong.breaks and v["kind"] == "clause"]
        if all(run.run_vector(vector, wrong.build) is None for vector in about):
            survivors.append(wrong.name)
    assert survivors == []


def test_known_faults_show() -> None:
    failed = {
        vector["clause"]
        for vector in every()
        if "v0.27" in vector["editions"]
        and vector["profile"] == "contract"
        and run.run_vector(vector, make.reference("arc", edition_named("v0.27")), "v0.27")
    }
    assert failed == {"evict/none-only-when-short"}


# --- The runner ----------------------------------------------------------------------------------


def test_the_runner_needs_the_standard_library_alone() -> None:
    for node in ast.walk(ast.parse(RUNNER.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names = [str(node.module)]
        for name in names:
            assert name.partition(".")[0] in sys.stdlib_module_names, name


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["cachelaw.reference:LRU"], "lru v0.33: "),
        (["cachelaw.reference:ARC"], "arc v0.33: "),
        (["cachelaw.reference.v019:ARC", "--profile", "arc"], None),
        (["cachelaw.reference.v026:LRU", "--edition", "v0.27"], "lru v0.27: "),
        (["cachelaw.reference.v020:FilterReusedOffloadingManager"], None),
        ([f"{ZOO}.right:Fifo"], "contract v0.33: "),
    ],
    ids=lambda value: " ".join(value).replace(str(ROOT), "") if isinstance(value, list) else "",
)
def test_the_runner_passes_what_is_right(
    arguments: list[str], first: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if "Filter" in arguments[0]:
        arguments = [*arguments, "--profile", "reuse-filter", "--edition", "v0.20"]
    expected = 1 if arguments[0].endswith("v019:ARC") else 0
    assert run.main(arguments) == expected
    out = capsys.readouterr().out
    assert out.startswith(first or "")
    if expected:
        failed = out.partition("\nfailed:\n")[2].split()
        assert {name.partition("@")[0] for name in failed} == {"evict/none-only-when-short"}


def test_the_runner_shows_the_first_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([f"{ZOO}.arc_uses:NeverPromotes", "--profile", "arc"]) == 1
    out = capsys.readouterr().out
    assert "expected: [" in out and "actual:   [" in out and "evict(n=1" in out
    assert "arc/second-use-promotes@v0.33#" in out.partition("failed:\n")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere"],
        ["no.such.module:Class"],
        ["cachelaw.reference:Nothing"],
        ["cachelaw.reference:LRU", "--vectors", "no-such-folder"],
        ["cachelaw.reference:LRU", "--profile", "reuse-filter", "--edition", "v0.33"],
    ],
    ids=" ".join,
)
def test_the_runner_on_wrong_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1


# --- States --------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return a value of the Informal Trace Format as Python's own."""
    match value:
        case {"#bigint": digits}:
            return int(digits)
        case {"#set": members}:
            return frozenset(map(plain, members))
        case {"#map": pairs}:
            return {plain(key): plain(made) for key, made in pairs}
        case {"#tup": members}:
            return tuple(map(plain, members))
        case {"tag": "Some", "value": inner}:
            return plain(inner)
        case {"tag": "None"}:
            return None
        case list():
            return tuple(map(plain, value))
        case dict():
            return {name: plain(inner) for name, inner in value.items()}
    return value


@pytest.mark.parametrize("path", traces(), ids=lambda path: path.name.partition(".itf")[0])
def test_states_are_those_of_the_core(path: Path) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    meta = data["#meta"]
    assert meta["format"] == "ITF"
    assert meta["vector"] in {vector["id"] for vector in every()}
    core = core_of(meta["profile"], edition_named(meta["edition"]))
    positions = meta["positions"]
    state: Any = core.start(meta["capacity"])
    counts: dict[int, int] = {}
    memories: dict[str, Any] = {}
    for number, seen in enumerate(data["states"]):
        assert seen["#meta"]["index"] == number
        assert list(seen)[1:] == data["vars"]
        picks = plain(seen["mbt::nondetPicks"])
        taken, victims = seen["mbt::actionTaken"], None
        assert (taken == "init") == (number == 0)
        if number:
            call = make.call_of({"call": taken, **picks})
            if taken == "insert":
                counts[picks["key"]] = -1
            request = picks.get("request") or ""
            world = World(
                counts.__getitem__,
                lambda name, key: positions.get(name, {}).get(str(key)),
                memories.get(request),
            )
            state, victims, memories[request] = core.apply(state, call, world)
            if taken == "set_ref_cnt":
                counts[picks["key"]] = picks["ref_cnt"]
            elif taken == "remove":
                del counts[picks["key"]]
            elif taken == "clear":
                counts.clear()
            for key in victims or ():
                del counts[key]
        assert plain(seen["answer"]) == victims
        assert plain(seen["ref_cnt"]) == counts
        assert _lists_of(seen) == _lists(state)


def _lists_of(seen: dict[str, Any]) -> Any:
    if "order" in seen:
        return plain(seen["order"])
    target = plain(seen["target"])
    lists = [plain(seen[name]) for name in ("t1", "t2", "b1", "b2")]
    return (*lists, target["above"] / target["below"])


def _lists(state: Any) -> Any:
    if isinstance(state, arc.ArcState):
        return state.t1, state.t2, state.b1, state.b2, state.target
    if isinstance(state, lru.EvictableOrder):
        return state.idle
    if isinstance(state, lru.RankedOrder):
        return tuple(key for _, key in state.entries)
    return state


def test_differences_and_a_dozen_others_are_shown_as_states() -> None:
    shown = {json.loads(path.read_text(encoding="utf-8"))["#meta"]["vector"] for path in traces()}
    differences = {v["id"] for v in every() if v["kind"] == "edition-difference"}
    assert differences <= shown
    assert len(shown - differences) >= 12


# --- Making --------------------------------------------------------------------------------------


@pytest.mark.deep
def test_the_files_are_what_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    assert make.main(["--check"]) == 0
