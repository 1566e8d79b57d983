"""The policy of every page: what a browser may load, run and send because of it (Content-Security-Policy)."""

from __future__ import annotations

_RULES = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types windlass",
)
POLICY = "; ".join(_RULES)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    # Not no-referrer: with that a browser says of its own page's form only that it comes from "null".
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
