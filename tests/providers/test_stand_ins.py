"""The stand-in for FCM takes what another party's client sends."""

import json

import pytest


def test_the_stand_in_of_fcm_accepts_pyfcms_requests(fcm, authority, tmp_path, monkeypatch):
    pyfcm = pytest.importorskip("pyfcm")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", authority.ca_file)
    monkeypatch.setattr(pyfcm.FCMNotification, "FCM_END_POINT_BASE", f"{fcm.origin}/v1/projects")
    account = tmp_path / "account.json"
    account.write_text(json.dumps(fcm.service_account()))
    sender, phone = pyfcm.FCMNotification(str(account), fcm.project), fcm.phone()
    android = {"priority": "HIGH", "ttl": "86400s"}
    answer = sender.notify(phone.token, "Backup", "finished", data_payload={"id": "n1"}, android_config=android)
    assert answer["name"].startswith(f"projects/{fcm.project}/messages/")
    assert (phone.messages[0]["data"], fcm.oauth_calls) == ({"id": "n1"}, 1)
    phone.then(404, "UNREGISTERED")
    with pytest.raises(pyfcm.errors.FCMNotRegisteredError):
        sender.notify(phone.token, "Backup", "finished")
