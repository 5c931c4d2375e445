"""nbgrader's formgrader in a real browser: a Jupyter server in a class's folder, and headless Chromium before it."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from nbgrader.api import Gradebook
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.classroom.instructor import environment
from tests.waiting import NEVER, until

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--window-size=1200,1000",
)  # fmt: skip
TOKEN = "formgrader"


class PatientService(webdriver.ChromeService):
    """Selenium gives chromedriver half a minute to come up; this waits for as long as its process is there."""

    def is_connectable(self) -> bool:
        connectable = super().is_connectable
        until(lambda: self.process.poll() is not None or connectable())
        return self.process.poll() is None


class Formgrader:
    """A context: the server and the browser run inside it."""

    def __init__(self, folder: Path, tmp_path: Path) -> None:
        self.folder, self.tmp_path = folder, tmp_path

    def __enter__(self) -> Formgrader:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "jupyter", "server", "--no-browser", "--allow-root", f"--port={port}"]
        self.server = subprocess.Popen(
            [*command, f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={self.folder}"],
            cwd=self.folder, env=environment(HOME=str(self.tmp_path)),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until(lambda: self.server.poll() is not None or self._answers())
        assert self.server.poll() is None
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in (*FLAGS, f"--user-data-dir={self.tmp_path / 'browser'}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = PatientService(executable_path=shutil.which("chromedriver"))
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_page_load_timeout(NEVER)
        self.driver.get(f"{self.address}/api?token={TOKEN}")  # sets the cookie
        return self

    def __exit__(self, *_: object) -> None:
        self.driver.quit()
        self.server.terminate()
        self.server.wait(NEVER)

    def text(self, path: str, until: str) -> str:
        """The page's text once `until` is part of it."""
        self.driver.get(f"{self.address}/{path}?token={TOKEN}")
        body = WebDriverWait(self.driver, NEVER)
        body.until(lambda driver: until in driver.find_element(By.TAG_NAME, "body").text)
        return self.driver.find_element(By.TAG_NAME, "body").text

    def submission(self, assignment: str, notebook: str, student: str) -> str:
        """The text of the page on which a person reviews this hand-in."""
        with Gradebook(f"sqlite:///{self.folder / 'gradebook.db'}") as gradebook:
            id = gradebook.find_submission_notebook(notebook, assignment, student).id
        return self.text(f"formgrader/submissions/{id}/", until="Student's answer")

    def screenshot(self, path: Path) -> None:
        self.driver.save_screenshot(str(path))

    def scripts_that_ran(self) -> list[str]:
        """Messages of the browser that name the function which hostile hand-ins call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if "steal" in entry["message"]]

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            urlopen(f"{self.address}/api", timeout=NEVER).close()
            return True
        return False
