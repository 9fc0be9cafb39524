"""One GET at the Hub through huggingface_hub's own session: bounded, retried, counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx2
from huggingface_hub import constants
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.utils import build_hf_headers, get_session, parse_ratelimit_headers

import neuronqa
from neuronqa.catalog.hub.budget import Budget
from neuronqa.errors import EnvironmentFault

TRIES: Final = 6
"""Looks at one address, as huggingface_hub's own backoff has."""
TIMEOUT_S: Final = 30.0
"""Between two bytes."""
DEADLINE_S: Final = 120.0
"""For a whole body, however steadily it drips."""
REDIRECTS: Final = 5
LONGEST_PAUSE_S: Final = 8.0
_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `status` 0 stands for no HTTP answer at all, and then `message` says why."""

    status: int
    body: bytes = b""
    code: str = ""
    """`X-Error-Code`."""
    message: str = ""
    """`X-Error-Message`, or what went wrong on the way."""
    next_url: str = ""
    """Where the next page is."""
    too_long: bool = False

    @property
    def settled(self) -> bool:
        """Would asking again change nothing?"""
        return self.status not in _AGAIN and self.status != 0


class HubClient:
    """Gets from one endpoint. Thread-safe."""

    def __init__(self, endpoint: str | None = None, sleep: Callable[[float], object] = time.sleep) -> None:
        self.endpoint = (endpoint or constants.ENDPOINT).rstrip("/")
        self._headers = build_hf_headers(library_name="neuronqa", library_version=neuronqa.__version__)
        self._sleep = sleep
        self.budget = Budget()
        """Shared by everything this client gets."""

    @property
    def authenticated(self) -> bool:
        return "authorization" in self._headers

    def get(self, path: str, limit: int) -> Answer:
        """GET `path` (or a full address of the endpoint) with at most `limit` bytes of body.

        Waits for the budget, tries again what may pass, and gives up after six looks. Raises EnvironmentFault when
        huggingface_hub is in offline mode.
        """
        url = urljoin(f"{self.endpoint}/", path)
        answer = Answer(0, message="nothing was sent")
        for number in range(TRIES):
            if number:
                self._sleep(min(LONGEST_PAUSE_S, 2.0 ** (number - 1)) if answer.status != 429 else 0.0)
            answer = self._follow(url, limit)
            if answer.settled:
                break
        return answer

    def _follow(self, url: str, limit: int) -> Answer:
        """One look, along redirects that stay on the endpoint's host; each of them is a request of its own."""
        for _ in range(REDIRECTS):
            if not self._ours(url):
                return Answer(421, message="redirected to another host")
            answer, location = self._once(url, limit)
            if not location:
                return answer
            url = urljoin(url, location)
        return Answer(421, message="redirected in circles")

    def _once(self, url: str, limit: int) -> tuple[Answer, str]:
        lane = _lane(url)
        self.budget.acquire(lane)
        try:
            with get_session().stream(
                "GET", url, headers=self._headers, timeout=TIMEOUT_S, follow_redirects=False
            ) as response:
                info = parse_ratelimit_headers(response.headers)
                self.budget.hear(lane, info)
                if response.status_code == 429 and (info is None or info.remaining > 0):
                    self.budget.hold(lane, _retry_after(response.headers.get("Retry-After", "")))
                location = response.headers.get("Location", "") if response.is_redirect else ""
                body, too_long = (b"", False) if location else _body(response, limit)
                return _answer(response, body, too_long), location
        except OfflineModeIsEnabled as error:
            raise EnvironmentFault("huggingface_hub is in offline mode", hint="unset HF_HUB_OFFLINE") from error
        except httpx2.InvalidURL as error:
            return Answer(421, message=f"not an address: {error}"), ""
        except httpx2.HTTPError as error:
            return Answer(0, message=f"{type(error).__name__}: {error}"), ""
        finally:
            self.budget.release(lane)

    def _ours(self, url: str) -> bool:
        here, there = urlsplit(self.endpoint), urlsplit(url)
        return (here.scheme, here.netloc) == (there.scheme, there.netloc)


def _lane(url: str) -> str:
    """Addresses that the Hub counts alike, as far as its documentation tells."""
    return "api" if urlsplit(url).path.startswith("/api/") else "resolvers"


def _answer(response: httpx2.Response, body: bytes, too_long: bool) -> Answer:
    return Answer(
        status=response.status_code,
        body=body,
        code=response.headers.get("X-Error-Code", "")[:100],
        message=response.headers.get("X-Error-Message", "")[:300],
        next_url=response.links.get("next", {}).get("url", ""),
        too_long=too_long,
    )


def _body(response: httpx2.Response, limit: int) -> tuple[bytes, bool]:
    """The body after decompression, or the first `limit` bytes of it and True."""
    parts: list[bytes] = []
    size = 0
    ends = time.monotonic() + DEADLINE_S
    for part in response.iter_bytes(chunk_size=1 << 16):
        parts.append(part)
        size += len(part)
        if size > limit:
            return b"", True
        if time.monotonic() > ends:
            raise httpx2.ReadTimeout("the body did not end", request=response.request)
    return b"".join(parts), False


def _retry_after(text: str) -> float:
    return min(float(text), 3600.0) if text.isascii() and text.isdigit() else 1.0
