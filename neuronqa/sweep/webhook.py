"""One message to a URL of a person's own when a sweep is over. That it cannot be delivered changes nothing else."""

from __future__ import annotations

import json
import logging
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from neuronqa.errors import UsageError

TIMEOUT_S: Final = 10.0

log = logging.getLogger(__name__)


def check_url(url: str) -> None:
    """Raises UsageError for what cannot be posted to."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("the webhook is no http or https URL", hint="e.g. https://host.example/hook")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """What is said is for the host that was named and for no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


def notify(url: str, message: Mapping[str, Any]) -> bool:
    """POST `message` as JSON; was it taken? The URL, which may hold a secret, is neither logged nor kept."""
    body = json.dumps(message).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S):
            return True
    except (OSError, urllib.error.URLError, ValueError) as error:
        log.warning(
            "The webhook on %s was not delivered: %s.",
            urlsplit(url).hostname,
            getattr(error, "reason", None) or type(error).__name__,
            extra={"action": "webhook_failed"},
        )
        return False
