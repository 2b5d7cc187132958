"""Secret tokens of addresses, derived from the server's secret: the same thing always gets the same token.

So a retry or a repeat has the same addresses although only the tokens' hashes are stored. Must not know what they
are for.
"""

import base64
import hmac

TOKEN_BYTES = 16

_secret = b""


def configure(secret: str) -> None:
    """Derive tokens from this secret of the server."""
    global _secret
    _secret = secret.encode()


def token_of(purpose: str, name: str) -> str:
    """The token of what has this name: 22 characters of base64url, different for each purpose."""
    key = hmac.digest(_secret, purpose.encode(), "sha256")
    digest = hmac.digest(key, name.encode(), "sha256")
    return base64.urlsafe_b64encode(digest[:TOKEN_BYTES]).decode().rstrip("=")
