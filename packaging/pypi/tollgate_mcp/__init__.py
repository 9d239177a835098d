"""Finds the `tollgate` program that this package installed, and starts it. Nothing is downloaded."""

import os
import sys
from importlib.metadata import PackageNotFoundError, distribution

__all__ = ["find_tollgate", "main"]

PACKAGE = "tollgate-mcp"


def find_tollgate():
    """Returns the path of the program. Raises FileNotFoundError if it is gone or another one took its place."""
    try:
        installed = distribution(PACKAGE).files or []
    except PackageNotFoundError:
        installed = []
    looked = []
    for entry in installed:
        # Never `Scripts`: there is no package for Windows.
        if entry.parts[-2:] != ("bin", "tollgate"):
            continue
        # `pip install --target DIR` moves scripts to DIR/bin, and leaves what it wrote about them as it is.
        beside = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin", "tollgate")
        for file in (os.path.abspath(entry.locate()), beside):
            looked.append(file)
            if os.access(file, os.X_OK) and entry.size in (None, os.stat(file).st_size):
                return file
    where = " and ".join(looked) or "any file of the package"
    raise FileNotFoundError(f"the program of {PACKAGE} is not at {where}; install {PACKAGE} again")


def main():
    """Becomes the program, with the arguments of this process."""
    try:
        program = find_tollgate()
    except FileNotFoundError as error:
        sys.exit(f"{PACKAGE}: {error}")
    os.execv(program, [program, *sys.argv[1:]])
