"""Secret tokens of addresses, derived from the server's secret: the same thing always gets the same token.

So a retry or a repeat has the same addresses although only the tokens' hashes are stored. Must not know what they
are for.
"""

import base64
import hmac

TOKEN_BYTES = 16


class DerivedTokens:
    """The tokens for one purpose; those for another have nothing in common with them."""

    def __init__(self, purpose: str) -> None:
        self._purpose, self._key = purpose.encode(), b""

    def configure(self, secret: str) -> None:
        """Derive tokens from this secret of the server."""
        self._key = hmac.digest(secret.encode(), self._purpose, "sha256")

    def of(self, name: str) -> str:
        """The token of what has this name: 22 characters of base64url."""
        digest = hmac.digest(self._key, name.encode(), "sha256")
        return base64.urlsafe_b64encode(digest[:TOKEN_BYTES]).decode().rstrip("=")
