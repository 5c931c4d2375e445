"""A PostgreSQL server in a folder of its own, heard on a socket only; run by the user postgres where we are root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from tests.waiting import NEVER


def programs() -> Path | None:
    """The folder of initdb and pg_ctl: Debian keeps them off the PATH."""
    on_path = shutil.which("initdb")
    found = [Path(on_path).resolve()] if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


class PostgresServer:
    """A context; `url` is that of an empty database."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.programs = folder, programs()
        self.data = folder / "data"

    def __enter__(self) -> PostgresServer:
        self.folder.mkdir(parents=True)
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        self._run("initdb", "-D", self.data, "--auth=trust", "-U", "course", "-E", "UTF8", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c fsync=off"
        self._run("pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "-o", options, "start")
        self._run("createdb", "-h", self.folder, "-U", "course", "class")
        self.url = f"postgresql://course@/class?host={self.folder}"
        return self

    def __exit__(self, *_: object) -> None:
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    def ask(self, query: str) -> str:
        return self._run("psql", "-h", self.folder, "-U", "course", "-d", "class", "-At", "-c", query).strip()

    def _run(self, name: str, *arguments: object) -> str:
        as_owner = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}
        with (self.folder.parent / f"{name}.out").open("w+") as out:  # no pipe: the server would hold it open
            done = subprocess.run(
                [self.programs / name, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}, timeout=NEVER, **as_owner,
            )  # fmt: skip
            out.seek(0)
            said = out.read()
        assert done.returncode == 0, f"{name}: {said}"
        return said
