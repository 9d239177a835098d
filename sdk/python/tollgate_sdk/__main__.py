"""`python -m tollgate_sdk build app`: makes a component of a module with componentize-py."""

from __future__ import annotations

import argparse
import ast
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
WORLDS = {"Pack": "tool-pack", "Judge": "policy"}


def world(module: pathlib.Path) -> str:
    """World of a module: that of the class which it exports."""
    for statement in ast.parse(module.read_text()).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if isinstance(statement, ast.ClassDef):
            names = [statement.name]
        for name in names:
            if name in WORLDS:
                return WORLDS[name]
    raise SystemExit(f"{module} exports nothing; end it with `Pack = pack.export()` or `Judge = YourPolicy.export()`")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tollgate_sdk", description="Components for Tollgate in Python.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="make a component of a module")
    build.add_argument("module", help="name of the module in this folder, for example app")
    build.add_argument("-o", "--output", type=pathlib.Path, help="the component [default: MODULE.wasm]")
    flags = parser.parse_args()
    maker = pathlib.Path(sys.executable).with_name("componentize-py")
    found = str(maker) if maker.exists() else shutil.which("componentize-py")
    if found is None:
        raise SystemExit("componentize-py is not installed; run: pip install componentize-py")
    output = flags.output or pathlib.Path(f"{flags.module}.wasm")
    output.parent.mkdir(parents=True, exist_ok=True)
    command = [found, "--wit-path", str(HERE / "wit"), "--world", world(pathlib.Path(f"{flags.module}.py")), "--quiet"]
    command += ["componentize", flags.module, "--python-path", ".", "--python-path", str(HERE.parent)]
    result = subprocess.run([*command, "--output", str(output)], check=False)
    if result.returncode == 0:
        print(f"{output}: {output.stat().st_size / (1 << 20):.1f} MiB")
    raise SystemExit(result.returncode)


if __name__ == "__main__":
    main()
