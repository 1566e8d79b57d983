"""Configured: who may, as the settings and the arguments of `app.asgi()` say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.web.access.addresses import Proxies
from windlass.web.access.authenticating import Several, scopes_among
from windlass.web.access.hosts import Hosts
from windlass.web.access.keys import ByKey, BySession
from windlass.web.access.origins import Origins
from windlass.web.access.vouched import ByProxy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.settings import Settings
    from windlass.web.access.authenticating import Authenticator


@dataclass(frozen=True, slots=True)
class WhoMay:
    """Who is asked for the caller, and what is turned away before."""

    authenticate: Authenticator
    hosts: Hosts | None
    """None: any"""
    origins: Origins
    proxies: Proxies

    @staticmethod
    def of(
        settings: Settings,
        authenticate: Authenticator | Sequence[Authenticator] | None = None,
        *,
        hosts: Sequence[str] | None = None,
        origins: Sequence[str] | None = None,
        proxies: Sequence[str] | None = None,
    ) -> WhoMay:
        """From what is given in code, and for the rest from the settings."""
        named = settings.http_hosts if hosts is None else hosts
        trusted = settings.http_proxies if proxies is None else proxies
        if authenticate is None:
            authenticate = set_up(settings, trusted)
        elif not callable(authenticate):
            authenticate = Several(authenticate)
        return WhoMay(
            authenticate,
            None if named is None else Hosts.of(named, _of("HOSTS", hosts)),
            Origins.of(settings.http_origins if origins is None else origins, _of("ORIGINS", origins)),
            Proxies.of(trusted, _of("PROXIES", proxies)),
        )


def set_up(settings: Settings, proxies: Sequence[str]) -> Several:
    """Keys always, then what is set: tokens, the word of a proxy; sessions last, as a browser sends them unasked."""
    found: list[Authenticator] = [ByKey()]
    if _has_tokens(settings):
        found.append(_by_token(settings))
    if settings.http_proxy_user is not None:
        if not proxies:
            raise SettingsError(
                f"WINDLASS_HTTP_PROXY_USER is {shown(settings.http_proxy_user)}, but nobody may send that header:"
                " name the proxies' addresses or networks in WINDLASS_HTTP_PROXIES"
            )
        usual = settings.http_proxy_usual
        found.append(ByProxy(settings.http_proxy_user, scopes=settings.http_proxy_scopes, usual=usual))
    return Several([*found, BySession()])


def lets_in_without_keys(settings: Settings) -> bool:
    """Whether somebody can be let in where there are no keys yet."""
    return _has_tokens(settings) or settings.http_proxy_user is not None


def _has_tokens(settings: Settings) -> bool:
    given = [name for name in ("secret", "jwks") if getattr(settings, f"http_jwt_{name}") is not None]
    if len(given) > 1:
        raise SettingsError("WINDLASS_HTTP_JWT_SECRET and WINDLASS_HTTP_JWT_JWKS are both set: choose one")
    more = (settings.http_jwt_issuer, settings.http_jwt_audience, *settings.http_jwt_algorithms)
    if not given and any(more):
        raise SettingsError(
            "WINDLASS_HTTP_JWT_… says which tokens are good, but not who signs them:"
            " set WINDLASS_HTTP_JWT_SECRET or WINDLASS_HTTP_JWT_JWKS"
        )
    return bool(given)


def _by_token(settings: Settings) -> Authenticator:
    from windlass.web.access.signers import check_place  # only who has tokens loads what reads them
    from windlass.web.access.tokens import ByToken, Tokens

    if settings.http_jwt_jwks is not None:
        check_place(settings.http_jwt_jwks, "WINDLASS_HTTP_JWT_JWKS")
    return ByToken(
        Tokens(
            secret=settings.http_jwt_secret,
            jwks=settings.http_jwt_jwks,
            algorithms=settings.http_jwt_algorithms,
            issuer=settings.http_jwt_issuer,
            audience=settings.http_jwt_audience,
            leeway=settings.http_jwt_leeway.total_seconds(),
            user=settings.http_jwt_user,
            scopes=settings.http_jwt_scopes,
            usual=scopes_among(settings.http_jwt_usual),
            attributes=settings.http_jwt_attributes,
        )
    )


def _of(setting: str, given: object) -> str:
    return f"WINDLASS_HTTP_{setting}" if given is None else setting.lower()
