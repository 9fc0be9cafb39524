"""A server on loopback that speaks the Hub's wire shapes, and misbehaves as the Hub, its proxies and its users do."""

from __future__ import annotations

import base64
import gzip
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Behaviour = Callable[["Handler"], None]


@dataclass
class Model:
    """A repository: its row in the listing, and what its config.json answers."""

    row: dict[str, Any]
    config: bytes | Behaviour

    @property
    def id(self) -> str:
        return str(self.row["id"])


@dataclass
class Window:
    """A fixed window of requests, as the Hub counts them."""

    quota: int
    seconds: int
    began: float = 0.0
    used: int = 0
    beyond: int = 0
    """Requests that came after the quota was used up."""

    def count(self, now: float) -> tuple[int, int]:
        """Count a request; return what is left and the seconds until the window ends. Left is -1 when refused."""
        if now - self.began >= self.seconds:
            self.began, self.used = now, 0
        ends = max(0, int(self.began + self.seconds - now))
        if self.used >= self.quota:
            self.beyond += 1
            return -1, ends
        self.used += 1
        return self.quota - self.used, ends


@dataclass
class FakeHub:
    """Models in order of the listing, limits, and a record of what was asked."""

    models: list[Model]
    page_rows: int = 500
    page: bytes | None = None
    """Answered in place of every page."""
    windows: dict[str, Window] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    order: list[str] = field(default_factory=list)
    storms: dict[str, int] = field(default_factory=dict)
    """Path to how many times it still answers 429, whatever is left."""
    storm_s: int = 1
    """In how many seconds, such an answer says, the window ends."""
    before: Callable[[str], None] = lambda _: None
    """Called with the path of each request, before it is answered."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    def by_id(self, name: str) -> Model | None:
        return next((model for model in self.models if model.id == name), None)


class Handler(BaseHTTPRequestHandler):
    """Answers GET."""

    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        kind = "api" if path.startswith("/api/") else "resolvers"
        self.hub.before(self.path)
        with self.hub.lock:
            self.hub.requests[path] += 1
            self.hub.order.append(path)
            self.limits = self._count(kind)
            stormy = self.hub.storms.get(path, 0) > 0
            if stormy:
                self.hub.storms[path] -= 1
        if stormy:
            policy = f'"fixed window";"{kind}";q=100;w=1'
            self.limits = {"RateLimit": f'"{kind}";r=0;t={self.hub.storm_s}', "RateLimit-Policy": policy}
        if stormy or "r=-1" in self.limits.get("RateLimit", ""):
            self.limits = {key: value.replace("r=-1", "r=0") for key, value in self.limits.items()}
            return self.answer(429, b"Too Many Requests")
        if path == "/api/models":
            return self._page()
        return self._config(path)

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        """A complete answer; names of headers have `_` for `-`."""
        self.send_response(status)
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        for key, value in {"Content-Length": str(len(body)), **self.limits, **sent}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def _count(self, kind: str) -> dict[str, str]:
        window = self.hub.windows.get(kind)
        if window is None:
            return {}
        left, ends = window.count(time.monotonic())
        policy = f'"fixed window";"{kind}";q={window.quota};w={window.seconds}'
        return {"RateLimit": f'"{kind}";r={left};t={ends}', "RateLimit-Policy": policy}

    def _page(self) -> None:
        if self.hub.page is not None:
            return self.answer(200, self.hub.page)
        query = parse_qs(urlsplit(self.path).query)
        assert query["sort"] == ["downloads"]
        rows = min(self.hub.page_rows, int(query["limit"][0]))
        ordered = sorted(self.hub.models, key=lambda model: (-model.row.get("downloads", 0), str(model.row.get("_id"))))
        start = 0
        if "cursor" in query:
            after = json.loads(base64.urlsafe_b64decode(query["cursor"][0]))
            start = sum((-m.row.get("downloads", 0), str(m.row.get("_id"))) <= tuple(after) for m in ordered)
        page = ordered[start : start + rows]
        headers = {"Content_Type": "application/json"}
        if start + rows < len(ordered):
            last = page[-1].row
            cursor = base64.urlsafe_b64encode(json.dumps([-last["downloads"], str(last["_id"])]).encode()).decode()
            expand = "&".join(f"expand={name}" for name in query.get("expand", ()))
            url = f"{self.hub.url}/api/models?sort=downloads&limit={rows}&{expand}&cursor={cursor}"
            headers["Link"] = f'<{url}>; rel="next"'
        body = gzip.compress(json.dumps([model.row for model in page]).encode())
        return self.answer(200, body, Content_Encoding="gzip", **headers)

    def _config(self, path: str) -> None:
        repo, _, rest = unquote(path[1:]).partition("/resolve/")
        model = self.hub.by_id(repo)
        if model is None or not rest.endswith("/config.json"):
            return self.answer(404, b"", X_Error_Code="RepoNotFound")
        if callable(model.config):
            return model.config(self)
        return self.answer(200, model.config, Content_Type="text/plain")

    def log_message(self, *_: object) -> None:
        """Silence."""


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    """Serve `hub` on a free port of loopback until the block ends."""
    handler = type("BoundHandler", (Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def row(number: int, name: str | None = None, **members: Any) -> dict[str, Any]:
    """An item as the Hub lists it."""
    return {
        "_id": f"{number:024x}",
        "id": name or f"org{number % 7}/model-{number}",
        "downloads": 1_000_000 // (number + 1),
        "gated": False,
        "disabled": False,
        "private": False,
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "sha": f"{number:040x}",
        "tags": ["transformers", "safetensors", "llama"],
        "config": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "tokenizer_config": {"x": "y" * 50}},
        "safetensors": {"parameters": {"BF16": 1000}, "total": 1000},
        **members,
    }


def llama(number: int) -> bytes:
    """One of a few shapes, with a name of its own."""
    return json.dumps(
        {
            "_name_or_path": f"model-{number}",
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": 64 * (1 + number % 5),
        }
    ).encode()


def refusing(status: int, **headers: str) -> Behaviour:
    return lambda handler: handler.answer(status, b"", **headers)


def cut(handler: Handler) -> None:
    """Promises more than it sends, then closes."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"model_type": ')
    handler.wfile.flush()
    handler.close_connection = True
    handler.connection.close()


def cut_at_first(body: bytes) -> Behaviour:
    """Is cut the first time, whole the second."""
    seen: list[int] = []

    def behave(handler: Handler) -> None:
        if seen:
            return handler.answer(200, body)
        seen.append(1)
        return cut(handler)

    return behave


def redirecting(target: str, body: bytes = b"") -> Behaviour:
    """Redirects to `target` once, and answers with `body` there."""

    def behave(handler: Handler) -> None:
        if "redirected=1" in handler.path:
            return handler.answer(200, body)
        return handler.answer(307, b"", Location=target)

    return behave


def zipped(body: bytes) -> Behaviour:
    return lambda handler: handler.answer(200, gzip.compress(body), Content_Encoding="gzip")
