"""Import a few modules of vLLM without vLLM: the real members, stand-ins for all they import.

A policy module imports its neighbours in `vllm/v1/kv_offload`, which a release supplies, and for
annotations, logging or base classes it names torch, numpy and other modules of vLLM. Those get
stand-ins: modules in which every name exists and does nothing.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any


class StandInBase:
    """What a class gets as its base where a stand-in was written: accepts anything, does nothing.

    A plain class without a metaclass, so that it goes together with ABC, Enum or a ctypes
    structure, and a class derived from it has no attributes that it does not define.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__()


class StandIn:
    """Any object of a module that is not there.

    It can be called, subscripted, put in an annotation and derived from; it is false and empty,
    and nothing is an instance of it. A decorator that is a stand-in leaves what it decorates as
    it was, so that no method of a policy is lost to one. `name` is for its repr only.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<stand-in for {self._name}>"

    def __getattr__(self, name: str) -> "StandIn":
        return _attribute(self, self._name, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the one function or class given, as a decorator that does nothing; else self."""
        if len(args) == 1 and not kwargs and isinstance(args[0], (FunctionType, type)):
            return args[0]
        return self

    def __getitem__(self, item: Any) -> "StandIn":
        return self

    def __or__(self, other: Any) -> "StandIn":
        return self

    def __ror__(self, other: Any) -> "StandIn":
        return self

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        # A class may name several stand-ins as bases; a base may occur only once.
        first = next(base for base in bases if isinstance(base, StandIn))
        return (StandInBase,) if first is self else ()

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __subclasscheck__(self, subclass: Any) -> bool:
        return False


class StandInModule(ModuleType):
    """A module, and a package, in which every name exists."""

    def __getattr__(self, name: str) -> StandIn:
        return _attribute(self, self.__name__, name)


def _attribute(owner: Any, owner_name: str, name: str) -> StandIn:
    """Make the attribute `name` of a stand-in, once, so that it stays the same object.

    Raises AttributeError for names such as `__wrapped__` or `__file__`: who asks for those wants
    to know what an object can do, and a stand-in can do nothing.
    """
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    made = StandIn(f"{owner_name}.{name}")
    setattr(owner, name, made)
    return made


def _array(values: Iterable[Any], dtype: Any = None) -> list[Any]:
    """Stand for numpy.array, by which the specs of a manager hold their chunk ids."""
    return list(values)


class ReleaseFinder(MetaPathFinder, Loader):
    """Supplies every module named `vllm` or below it, while it is on sys.meta_path.

    `sources` maps member names of the wheel (`vllm/v1/kv_offload/base.py`) to their contents:
    these modules are executed, from the verified bytes and not from the disk. `folder` is where
    they lie, for tracebacks. All other modules are stand-ins, `vllm` and `vllm.v1` among them, so
    that nothing else of vLLM is executed, even if it is installed. In the folders of the sources
    there are none once `close` is called: what is not there, the release does not have.
    """

    def __init__(self, sources: Mapping[str, bytes], folder: Path, version: str) -> None:
        self._sources = sources
        self._folder = folder
        self._version = version
        self._lent: frozenset[str] = frozenset()
        self._closed: frozenset[str] = frozenset()
        self._open: frozenset[str] = frozenset()

    def install(self) -> None:
        """Begin to supply vllm. It has to go on after the import: managers import lazily."""
        sys.meta_path.insert(0, self)

    def uninstall(self) -> None:
        """Stop, and forget every module of vllm."""
        sys.meta_path.remove(self)
        for name in [name for name in sys.modules if _root(name) == "vllm"]:
            del sys.modules[name]

    def close(self, open_packages: Iterable[str]) -> None:
        """Supply no stand-in any more beside the sources, so that a missing module is missed.

        `open_packages` are packages there that the sources leave out.
        """
        folders = {member.rpartition("/")[0].replace("/", ".") for member in self._sources}
        self._closed = frozenset(folders)
        self._open = frozenset(open_packages)

    @contextmanager
    def lend(self, roots: Iterable[str]) -> Iterator[None]:
        """Supply stand-ins for these top-level modules too, only inside the with statement.

        Afterwards none is left in sys.modules, where other libraries look to see what is
        installed. A module already imported keeps its place.
        """
        self._lent = frozenset(root for root in roots if root not in sys.modules)
        try:
            yield
        finally:
            for name in [name for name in sys.modules if _root(name) in self._lent]:
                del sys.modules[name]
            self._lent = frozenset()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for vllm and for what is lent (importlib's finder protocol)."""
        if _root(fullname) != "vllm" and _root(fullname) not in self._lent:
            return None
        stem = fullname.replace(".", "/")
        for member, is_package in ((f"{stem}/__init__.py", True), (f"{stem}.py", False)):
            if member in self._sources:
                origin = str(self._folder / member)
                spec = ModuleSpec(
                    fullname, self, origin=origin, loader_state=member, is_package=is_package
                )
                spec.has_location = True
                return spec
        if fullname.rpartition(".")[0] in self._closed and fullname not in self._open:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Make a stand-in, or leave a real member to the default (importlib's loader protocol)."""
        return None if spec.has_location else StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Execute a real member, and furnish the stand-ins that need more than bare names."""
        if not isinstance(module, StandInModule):
            assert module.__spec__ is not None
            source = self._sources[module.__spec__.loader_state]
            exec(compile(source, str(module.__file__), "exec", dont_inherit=True), vars(module))
        elif module.__name__ == "vllm":
            vars(module)["__version__"] = self._version
        elif module.__name__ == "numpy":
            vars(module)["array"] = _array


def _root(name: str) -> str:
    return name.partition(".")[0]
