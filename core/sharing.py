"""Counts of requests that the processes of a service share through Redis, if `REDIS_URL` is set.

Without it nothing here has an effect, and redis-py is not imported.
"""

import secrets

from config import Settings
from process import counters
from process.redis_client import RedisClient
from store import server_notes

KEY = "redis"  # of the server: 64 hexadecimal digits

_redis: RedisClient | None = None
_secret = ""


def configure(settings: Settings) -> None:
    """Share with the other processes on the same database, if the settings name a Redis."""
    global _redis, _secret
    if _redis:
        _redis.close()
    _redis = None
    if settings.redis_url:
        _secret = server_notes.find_key(KEY) or server_notes.put_first_key(KEY, secrets.token_hex(32))
        _redis = RedisClient(settings.redis_url, _secret[:12], settings.redis_tls_verify, settings.ca_file)
    counters.reset(_redis)


def redis() -> tuple[RedisClient, str] | None:
    """The client, and a secret that all processes on the same database have; None if nothing is shared."""
    return (_redis, _secret[12:]) if _redis else None


def fault() -> str | None:
    """The fault that keeps this process from using Redis, in few words."""
    return _redis.fault() if _redis else None


def is_away() -> bool | None:
    """Whether this process counts by itself because Redis cannot be used; None if it is not to use one."""
    return _redis.is_away if _redis else None
