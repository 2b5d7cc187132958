"""The web app under /app/. Each module has the pages and forms for one noun.

`OPERATIONS` of a module are the method, the rule and the handler of each, where `app` gives all the same guard.
Forms use POST, redirect, GET, and all pages except the one that enables a browser work without JavaScript.
It must not know SQL, the field names of the REST API, or how a push is sent.
"""

from dashboard import (
    alert_template,
    alerts,
    answers,
    devices,
    followers,
    history,
    home,
    keys,
    mail_links,
    metrics,
    notification,
    page,
    people,
    phone,
    quiet_hours,
    ring,
    settings,
    signin,
    watches,
)
