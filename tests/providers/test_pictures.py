"""How a picture reaches a phone: at the three providers' stand-ins."""

from io import BytesIO

from tests.support.picture_files import ELSEWHERE, png


def told(phones):
    """The picture's address in the last push of each provider; None where there is none."""
    apple, android = phones.to_apple[0], phones.to_android["notification"]
    assert (apple["aps"].get("mutable-content") == 1) == ("image" in apple)
    return apple.get("image"), android.get("image"), phones.to_browser[0].get("image")


def test_each_provider_gets_the_address_of_a_picture_elsewhere(phones):
    phones.send(image=ELSEWHERE)
    assert told(phones) == (ELSEWHERE,) * 3


def test_each_provider_gets_the_address_of_a_picture_that_came_with_it(phones):
    parts = {"title": "Door", "body": "motion", "image": (BytesIO(png()), "cam.png")}
    sent = phones.caller.request("POST", "/api/v1/notifications/send", data=parts).json["notification"]
    path = "/i/" + sent["image"].rpartition("/")[2]
    assert told(phones) == (f"http://127.0.0.1:8000{path}",) * 3
    assert phones.caller.service.client.get(path).data == png()


def test_a_long_address_gives_way_to_the_text(phones):
    long = ELSEWHERE + "?" + "u" * 1_900
    phones.send(body="ü" * 5_000, image=long)
    assert told(phones) == (long,) * 3
    phones.send(body="ü" * 5_000, image=long, url="https://x.example/" + "u" * 900)
    assert told(phones) == (None, None, None)
    assert phones.to_browser[0]["navigate"].endswith("u" * 900)
    assert len(phones.to_browser[0]["body"]) > 500
