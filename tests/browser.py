"""A real Chromium without a window, driven by its own protocol over a websocket: pages, keys, what went wrong."""

import asyncio
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Nothing of its own asks the network: updates, sync, lists of sites.
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic")
KEYS = {"Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "Tab": 9, "Enter": 13}


def chromium():
    """The path of a browser, None if there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of a browser; `requests` are the addresses that it asked for, `errors` what its console said."""

    def __init__(self):
        self.requests, self.errors, self._number = [], [], 0
        self._loop = asyncio.new_event_loop()
        self._folder = tempfile.mkdtemp(prefix="raybench-chromium-")
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run")
        self._process = subprocess.Popen(
            [chromium(), *flags, *QUIET, f"--user-data-dir={self._folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._loop.run_until_complete(self._connect())
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    async def _connect(self):
        port_file, deadline = Path(self._folder, "DevToolsActivePort"), time.monotonic() + 30
        while not (port_file.exists() and port_file.read_text().strip()):
            assert time.monotonic() < deadline and self._process.poll() is None, "Chromium did not start"
            await asyncio.sleep(0.02)
        port = port_file.read_text().split()[0]
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            (page,) = [one for one in await answer.json() if one["type"] == "page"]
        self._socket = await self._session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)

    def call(self, method, **parameters):
        return self._loop.run_until_complete(asyncio.wait_for(self._call(method, parameters), 30))

    async def _call(self, method, parameters):
        self._number += 1
        number = self._number
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            said = json.loads((await self._socket.receive()).data)
            if said.get("id") == number:
                assert "error" not in said, said
                return said["result"]
            self._note(said.get("method"), said.get("params"))

    def _note(self, event, about):
        if event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.errors.append(about["exceptionDetails"])
        elif event == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.errors.append(about["entry"]["text"])
        elif event == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.errors.append(about["args"])

    def open(self, path, width=1280, height=900, scheme="light"):
        """A page at a size and colour scheme, once its scripts have run."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=f"file://{path}")
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def do(self, script):
        """The value of an expression in the page, which may be a promise."""
        found = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition):
        deadline = time.monotonic() + 15
        while not self.do(f"Boolean({condition})"):
            assert time.monotonic() < deadline, f"never: {condition}"
            time.sleep(0.02)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])

    def close(self):
        self._loop.run_until_complete(self._socket.close())
        self._loop.run_until_complete(self._session.close())
        self._loop.close()
        self._process.terminate()
        self._process.wait(20)
        shutil.rmtree(self._folder, ignore_errors=True)
