"""Requests that APNs accepts, and ones with something wrong in them."""

import time

import jwt


def provider_token(apns, ago=0, key=None, kid=None, algorithm="ES256", **claims):
    claims = {"iss": apns.team_id, "iat": int(time.time()) - ago} | claims
    return jwt.encode(claims, key or apns.key_pem, algorithm, {"kid": kid or apns.key_id})


def apns_headers(apns, **changes):
    """Valid headers with these changes; None leaves one out."""
    headers = {
        "authorization": f"bearer {provider_token(apns)}",
        "apns-topic": apns.topic,
        "apns-push-type": "alert",
        "apns-priority": "10",
        "apns-expiration": "1795341600",
    }
    headers |= {name.replace("_", "-"): value for name, value in changes.items()}
    return {name: value for name, value in headers.items() if value is not None}
