# SPDX-License-Identifier: GPL-2.0
"""Load what an operator runs, which is a program without .py, so that cases can call it."""
import importlib.machinery
import importlib.util
import pathlib
import sys


def load(name):
    """The program as a module. It leaves no compiled copy beside it."""
    sys.dont_write_bytecode = True
    path = pathlib.Path(__file__).resolve().parents[2] / "tools/user" / name
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(path))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
