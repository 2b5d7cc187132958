"""What a request to send may carry, and what is answered: fields beyond title and body, which are optional."""

import pytest

from store.notifications import NotificationRow
from wire import notification
from wire.errors import Refused
from wire.notification import Content, RequestField


def short(sent, name):
    if not isinstance(sent, str):
        raise Refused(400, f"{name} must be a string.")
    return (sent,)


@pytest.fixture
def optional(monkeypatch):
    """As if a notification could be sent with what is `missing`, under the name `lacks`."""
    field = {"missing": RequestField("lacks", short)}
    monkeypatch.setattr(notification, "BY_COLUMN", notification.BY_COLUMN | field)
    monkeypatch.setattr(notification, "OPTIONAL_FIELDS", field)


def checked(**more):
    return notification.checked_content({"title": "Disk", "body": "full", **more})


@pytest.mark.parametrize("more", [{}, {"lacks": None}])
def test_an_optional_field_that_is_absent_or_null_has_its_default(optional, more):
    assert checked(**more) == Content("Disk", "full")


def test_an_optional_field_is_kept_under_the_name_of_its_column(optional):
    assert checked(lacks="a") == Content("Disk", "full", missing=("a",))


def test_an_optional_field_of_a_wrong_type_is_refused_with_its_name(optional):
    with pytest.raises(Refused, match=r"lacks must be a string\."):
        checked(lacks=1)


def test_an_optional_field_is_answered_under_its_own_name(optional):
    recorded = NotificationRow(1, "1", "held", 7, Content("Disk", "full", missing=("a",)))
    answered = notification.as_answered("1", "held", 7, "Disk", "full", recorded.content.given)
    assert answered == {"id": "1", "title": "Disk", "body": "full", "status": "held", "createdAt": 7, "lacks": ("a",)}
