"""Refuses subinterpreters, as NumPy does. From 3.12 on Python does that itself, before the extension's code runs."""

from __future__ import annotations

import importlib
import sys


def refuse_subinterpreters() -> None:
    """errors: ImportError outside the main interpreter."""
    try:
        interpreters = importlib.import_module("_xxsubinterpreters")
    except ImportError:  # then nobody can have made one
        return
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError("warmroute does not support subinterpreters: import it in the main interpreter, or in a process of its own")


if sys.version_info < (3, 12):
    refuse_subinterpreters()
