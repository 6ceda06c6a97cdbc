"""Where studies are kept: SQLite in the runs folder, or any storage URL that Optuna takes; its errors in one line."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import InputError, StoreError
from workbench.store.folder import default_root, prepare_root

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

FILE = "studies.sqlite3"
_WAIT_S = 10.0  # for a lock that another process holds


def default_url(root: Path | None = None) -> str:
    """SQLite in the runs folder."""
    return f"sqlite:///{(root or default_root()).resolve() / FILE}"


def shown(url: str) -> str:
    """The URL without its password."""
    from sqlalchemy.engine import make_url

    with contextlib.suppress(Exception):
        return make_url(url).render_as_string(hide_password=True)
    return url.split("@")[-1]


def open_storage(url: str | None = None, root: Path | None = None) -> BaseStorage:
    """Open a storage, and make it where it is a file that is not there yet.

    Args:
        url: as Optuna takes it (``sqlite:///file``, ``postgresql://...``, ``mysql://...``); by default SQLite.
        root: folder of the runs, for the default.

    Raises:
        InputError: it is no storage URL, or its driver is not installed.
        StoreError: it is locked, cannot be reached or cannot be written.
    """
    import optuna  # here, since it takes a second to import

    if url is None:
        prepare_root(root)
        url = default_url(root)
    if "://" not in url:
        raise InputError("--storage", url, "a storage URL such as sqlite:///studies.sqlite3", "write it like that")
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # the study's progress is told by what runs it
    if _file_of(url) in ("", ":memory:"):
        expected = "a storage that outlives this process"
        raise InputError("--storage", url, expected, "name a file: sqlite:///studies.sqlite3")
    with storing(url), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if url.startswith("sqlite"):
            return optuna.storages.RDBStorage(url, engine_kwargs={"connect_args": {"timeout": _WAIT_S}})
        return optuna.storages.get_storage(url)


@contextlib.contextmanager
def storing(url: str) -> Iterator[None]:
    """Turn what a storage may throw into one line.

    Raises:
        InputError: it is no storage URL, or its driver is not installed.
        StoreError: it is locked, cannot be reached or cannot be written.
    """
    from optuna.exceptions import StorageInternalError
    from sqlalchemy import exc

    try:
        yield
    except (exc.ArgumentError, exc.NoSuchModuleError, ValueError) as error:
        fix = "write it like sqlite:///studies.sqlite3"
        raise InputError("--storage", shown(url), f"a storage URL that Optuna takes ({error})", fix) from None
    except ImportError as error:
        raise InputError("--storage", shown(url), f"its driver ({error})", "install the driver") from None
    except (StorageInternalError, exc.SQLAlchemyError, RuntimeError, OSError) as error:
        raise StoreError(_why(shown(url), error)) from None


def is_missing(url: str) -> bool:
    """Whether it is a file that is not there, which opening would make."""
    file = _file_of(url)
    return file not in (None, "", ":memory:") and not Path(str(file)).exists()


def _file_of(url: str) -> str | None:
    """The file of an SQLite storage, empty for one in memory; None where it is another storage, or none at all."""
    from sqlalchemy.engine import make_url

    with contextlib.suppress(Exception):  # what is no URL is refused by name when it is opened
        made = make_url(url)
        return (made.database or "") if made.get_backend_name() == "sqlite" else None
    return None


def _why(url: str, error: BaseException) -> str:
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    said = str(getattr(cause, "orig", None) or cause)
    if "locked" in said:
        return (
            f"study storage {url}: locked by another process for {_WAIT_S:g} s, expected a free one; end what uses it, "
            "or choose another with --storage"
        )
    return f"study storage {url}: {said}; expected one that can be read and written; look at it, or choose another"
