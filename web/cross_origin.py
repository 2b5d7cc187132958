"""ntfy's addresses for pages of other sites: a script may send there with a key, never with a cookie (CORS).

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
    """Answer what a browser asks before it sends: it needs no key, and would send none."""
    return Response(status=204, headers=OF_PREFLIGHTS) if request.method == "OPTIONS" else None
