"""The stand-in for FCM takes what another party's client sends; one that is closed leaves nothing behind."""

import json
import socket
import threading

import pytest

from tests.support.apns_service import ApnsService
from tests.support.listener import ignore, listening
from tests.support.server import wait_until
from tests.support.smtp_service import SmtpService


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


def test_a_closed_stand_in_takes_no_connection_of_the_server_that_gets_its_descriptor(authority):
    others = set(threading.enumerate())
    apns, smtp = ApnsService(authority), SmtpService()
    with listening(ignore) as listener:
        for port in (apns.port, smtp.port, listener.port):
            socket.create_connection(("127.0.0.1", port)).close()
    apns.close()
    smtp.close()
    waiting = set(threading.enumerate()) - others
    wait_until(lambda: waiting.isdisjoint(threading.enumerate()))  # one of them may not have begun
