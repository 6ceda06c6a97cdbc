"""Interactive tuning workbench for chunked prefill on vLLM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.session import Workbench

__version__ = "0.1.0"
__all__ = ["Workbench", "__version__"]


def __getattr__(name: str) -> Any:
    """Import ``Workbench`` when it is asked for: the guard and the probe import this package too and stay light."""
    if name == "Workbench":
        from workbench.session import Workbench

        return Workbench
    raise AttributeError(f"module 'workbench' has no attribute {name!r}")
