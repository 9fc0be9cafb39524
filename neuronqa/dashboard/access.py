"""Who may read and who may write: Host and Origin checks, a token beyond loopback, and headers on everything.

A page on another site can make a browser send requests here. It cannot read answers (no CORS), it cannot pretend to be
this host (the Host header is checked, which also ends DNS rebinding), and what it sends is no write (Origin is checked,
and a form carries a key only this process knows).
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

from fastapi import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer`, a browser names no origin either when it sends a form, and is refused.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
READING: Final = ("GET", "HEAD")
COOKIE: Final = "neuronqa"
SHORTEST_TOKEN: Final = 16


@dataclass(frozen=True, kw_only=True)
class Access:
    """How the pages may be used."""

    token: str = ""
    """Asked of everybody when it is set; needed to listen beyond loopback."""
    read_only: bool = False
    form_key: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """In every form of ours: another site cannot know it."""

    @property
    def writable(self) -> bool:
        return not self.read_only

    def refuse(self, request: Request) -> Response | None:
        """An answer for whoever may not go on; None for who may. A token in the URL becomes a cookie at once."""
        if not self.token and not is_loopback(host_of(request)):
            return PlainTextResponse("this host is not served here", status_code=421)
        if self.token and not self._known(request):
            return self._ask(request)
        if request.method not in READING:
            return self._refuse_write(request)
        return None

    def _known(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        presented = given.strip() if scheme.lower() == "bearer" else request.cookies.get(COOKIE, "")
        return self._is_token(presented)

    def _is_token(self, presented: str) -> bool:
        return hmac.compare_digest(presented.encode(), self.token.encode())

    def _ask(self, request: Request) -> Response:
        if request.method == "GET" and self._is_token(request.query_params.get("token", "")):
            response = RedirectResponse(request.url.path, status_code=303)
            response.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
            return response
        hint = "give the token: ?token=... once in a browser, or an Authorization: Bearer header"
        return PlainTextResponse(hint, status_code=401, headers={"WWW-Authenticate": "Bearer"})

    def _refuse_write(self, request: Request) -> Response | None:
        if self.read_only:
            return PlainTextResponse("these pages are read-only", status_code=403)
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "same-origin")
        if site != "same-origin" or (origin is not None and origin.partition("://")[2] != request.headers.get("host")):
            return PlainTextResponse("only a page of this host may write", status_code=403)
        return None

    def holds_key(self, given: str) -> bool:
        """Does a form carry our key?"""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.form_key.encode())


def host_of(request: Request) -> str:
    """The name in the Host header, without its port."""
    host = request.headers.get("host", "")
    if host.startswith("["):
        return host.partition("]")[0][1:]
    return host.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Does this name or address mean this machine alone?"""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
