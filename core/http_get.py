"""One GET of an address that the operator has set; no proxy of the environment is used."""

import ssl
import urllib.error
import urllib.request

import certifi

TIMEOUT_S = 5
READ_BYTES = 1_000


def get(url: str, ca_file: str | None) -> tuple[int, str | None, bytes]:
    """The answer: its status, `Date` and the beginning of its body; raises `OSError`."""
    context = ssl.create_default_context(cafile=ca_file or certifi.where())
    https, no_proxy = urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler({})
    try:
        with urllib.request.build_opener(https, no_proxy).open(url, timeout=TIMEOUT_S) as answer:
            return answer.status, answer.headers["Date"], answer.read(READ_BYTES)
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, answer.headers["Date"], b""
    except (ValueError, urllib.error.URLError) as error:
        raise OSError(reason(error)) from None


def reason(error: Exception) -> str:
    """The reason in few words, without the address that was asked."""
    reason = getattr(error, "reason", error)
    return str(getattr(reason, "verify_message", None) or getattr(reason, "strerror", None) or reason)
