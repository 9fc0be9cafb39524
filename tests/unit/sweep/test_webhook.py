"""A webhook is told once, and nobody else; what it does cannot hurt a sweep."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from neuronqa.errors import UsageError
from neuronqa.sweep.webhook import check_url, notify


class Listener(HTTPServer):
    """Notes what it is told, and answers what it was told to."""

    def __init__(self) -> None:
        self.answer = 204
        self.told: list[Any] = []
        super().__init__(("127.0.0.1", 0), Hook)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/secret"


class Hook(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        self.server.told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.answer)
        if self.server.answer == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    do_GET = do_POST  # noqa: N815 - the name the server looks for

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def listener() -> Iterator[Listener]:
    server = Listener()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_is_told_once(listener: Listener) -> None:
    assert notify(listener.url, {"sweep": "one", "state": "done"})
    assert listener.told == [{"sweep": "one", "state": "done"}]


@pytest.mark.parametrize("answer", [302, 500])
def test_one_that_refuses_or_sends_elsewhere_is_not_followed_and_not_named_whole(
    listener: Listener, answer: int, caplog: pytest.LogCaptureFixture
) -> None:
    listener.answer = answer
    assert not notify(listener.url, {"sweep": "one"})
    assert len(listener.told) == 1
    assert "127.0.0.1" in caplog.text
    assert "secret" not in caplog.text


def test_one_that_is_not_there_is_no_error() -> None:
    assert not notify("http://127.0.0.1:9/", {})


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/x", "https://", "hook"])
def test_what_is_no_web_address_is_refused_before_a_sweep(url: str) -> None:
    with pytest.raises(UsageError, match="webhook"):
        check_url(url)
