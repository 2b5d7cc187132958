"""CORS for ntfy's addresses: scripts of any site may call them with an API key, never with a cookie.

Must not know which addresses these are.
"""

from flask import Response

from web.context import request

FOR_ALL = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", "*"))
OF_PREFLIGHTS = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
    "Access-Control-Allow-Headers": "*, Authorization",  # which the asterisk does not cover
    "Access-Control-Max-Age": "86400",
}


def preflight() -> Response | None:
    """Answer a preflight request, which carries no credential."""
    return Response(status=204, headers=OF_PREFLIGHTS) if request.method == "OPTIONS" else None
