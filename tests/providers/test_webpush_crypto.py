"""Message encryption and signature of Web Push, against the RFCs' own example and the packages of others."""

import os

import http_ece
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02

from providers import webpush_crypto
from providers.webpush import MAX_BYTES
from tests.support.push_service import Browser, unbase64url
from tests.support.rows import each

CLAIMS = {"aud": "https://push.example.org", "exp": 1_800_000_000, "sub": "mailto:owner@example.org"}


@pytest.fixture(scope="module")
def browser():
    return Browser("https://push.example.org/1")


@pytest.fixture(scope="module")
def keys(browser):
    """The browser's keys as a subscription gives them."""
    given = browser.subscription["keys"]
    return webpush_crypto.browser_keys(unbase64url(given["p256dh"]), unbase64url(given["auth"]))


def decrypted(body, browser):
    return http_ece.decrypt(body, private_key=browser.private_key, auth_secret=browser.auth, version="aes128gcm")


def test_the_example_of_rfc_8291_comes_out_to_the_byte():
    p256dh = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    keys = webpush_crypto.browser_keys(unbase64url(p256dh), unbase64url("BTBZMqHH6r4Tts7J_aSIgg"))
    number = int.from_bytes(unbase64url("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"), "big")
    key = ec.derive_private_key(number, ec.SECP256R1())
    salt = unbase64url("DGv6ra1nlYgDCS1FRnbzlw")
    assert webpush_crypto.sealed(b"When I grow up, I want to be a watermelon", keys, key, salt) == unbase64url(
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6P"
        "Bru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


@each("length", [0, 1, 41, 1_000, MAX_BYTES])
def test_a_browser_decrypts_its_push(browser, keys, length):
    text = os.urandom(length)
    body = webpush_crypto.encrypted(text, keys)
    assert decrypted(body, browser) == text
    assert len(body) == length + 103 <= 4_096


def test_a_message_cannot_be_read_by_another_browser_or_with_another_secret(browser, keys):
    body = webpush_crypto.encrypted(b"the door code", keys)
    other, stranger = Browser(browser.endpoint), Browser(browser.endpoint)
    other.private_key = browser.private_key
    for reader in (other, stranger):
        with pytest.raises(http_ece.ECEException):
            decrypted(body, reader)


def test_each_message_has_a_key_and_a_salt_of_its_own(keys):
    bodies = [webpush_crypto.encrypted(b"the same", keys) for _ in range(20)]
    assert len({body[:16] for body in bodies}) == len({body[21:86] for body in bodies}) == 20


COMPRESSED = (
    ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
)


@each("point", [b"", b"\x00", b"\x04" * 65, COMPRESSED])
def test_a_key_that_is_no_uncompressed_point_is_refused(point):
    with pytest.raises(ValueError):
        webpush_crypto.browser_keys(point, b"s" * 16)


def test_the_signature_is_that_of_the_public_key_beside_it():
    key, other = (webpush_crypto.VapidKey(webpush_crypto.new_vapid_key()) for _ in range(2))
    header = key.authorization(CLAIMS)
    assert Vapid02.verify(header) and header.endswith(f",k={key.public}")
    assert not Vapid02.verify(header.replace(key.public, other.public))


def test_the_key_of_an_earlier_version_is_still_the_same_key():
    text = webpush_crypto.new_vapid_key()
    earlier = Vapid02.from_raw(text.encode()).sign(CLAIMS)["Authorization"]
    assert earlier.endswith(f",k={webpush_crypto.VapidKey(text).public}")
