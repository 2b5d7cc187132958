"""Short payloads in the shapes that senders document for their webhooks, with values of our own."""

SENDERS = {
    "Slack text": {"text": "Build *12* failed: <https://ci.example/12|#12> &amp; more", "username": "ci"},
    "Slack attachment": {
        "text": "Deploy",
        "attachments": [
            {"fallback": "x", "color": "danger", "title": "shop #7 failed", "title_link": "https://ci.example/7",
             "text": "exit 1", "fields": [{"title": "Branch", "value": "main", "short": True}], "footer": "ci"}
        ],
    },
    "Slack blocks": {
        "text": "CPU high on web-1",
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": "CPU high"}},
            {"type": "section", "text": {"type": "mrkdwn", "text": "*web-1* is at 97 %"},
             "fields": [{"type": "mrkdwn", "text": "Since 10:00"}]},
            {"type": "actions", "elements": [
                {"type": "button", "text": {"type": "plain_text", "text": "Open"}, "url": "https://mon.example/1"}]},
            {"type": "image", "image_url": "https://mon.example/a.png", "alt_text": "chart"},
        ],
    },
    "Discord": {
        "username": "Bot", "avatar_url": "https://cdn.example/a.png", "content": "<@1>",
        "embeds": [
            {"title": "Disk full", "description": "**98 %** on [nas](https://nas.example/d)", "color": 1,
             "url": "https://nas.example", "thumbnail": {"url": "https://cdn.example/t.png"},
             "fields": [{"name": "Path", "value": "/srv", "inline": True}], "footer": {"text": "x"}}
        ],
    },
    "Teams MessageCard": {
        "@type": "MessageCard", "@context": "https://schema.org/extensions", "themeColor": "f00",
        "summary": "Backup failed", "title": "Backup failed",
        "sections": [{"activityTitle": "nas", "activitySubtitle": "tonight", "text": "no space",
                      "facts": [{"name": "Job:", "value": "daily"}]}],
        "potentialAction": [{"@type": "OpenUri", "name": "Open", "targets": [{"os": "default", "uri": "https://b.example"}]}],
    },
    "Teams MessageCard of text": {"@type": "MessageCard", "title": "Build", "text": "**Failed**<br>[Log](https://ci.example/1)"},
    "Teams Adaptive Card": {
        "type": "message",
        "attachments": [
            {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None,
             "content": {"type": "AdaptiveCard", "version": "1.5",
                         "body": [{"type": "TextBlock", "text": "Backup failed", "weight": "Bolder"},
                                  {"type": "Image", "url": "https://b.example/a.png"},
                                  {"type": "FactSet", "facts": [{"title": "Job", "value": "daily"}]},
                                  {"type": "ColumnSet", "columns": [
                                      {"type": "Column", "items": [{"type": "TextBlock", "text": "no space"}]}]}],
                         "actions": [{"type": "Action.OpenUrl", "title": "Open", "url": "https://b.example/1"}]}}
        ],
    },
    "Google Chat": {
        "cardsV2": [
            {"cardId": "1", "card": {
                "header": {"title": "Backup failed", "subtitle": "nas", "imageUrl": "https://b.example/a.png"},
                "sections": [{"header": "Job", "widgets": [
                    {"textParagraph": {"text": "<b>no</b> space<br>left"}},
                    {"decoratedText": {"topLabel": "Path", "text": "/srv"}},
                    {"buttonList": {"buttons": [{"text": "Open", "onClick": {"openLink": {"url": "https://b.example"}}}]}},
                ]}]}}
        ]
    },
    "Google Chat before v2": {
        "cards": [{"header": {"title": "Backup failed"}, "sections": [{"widgets": [
            {"keyValue": {"topLabel": "Path", "content": "/srv", "onClick": {"openLink": {"url": "https://b.example"}}}},
            {"buttons": [{"textButton": {"text": "OPEN", "onClick": {"openLink": {"url": "https://c.example"}}}}]}]}]}]
    },
    "Gitea": {"action": "opened", "number": 2, "issue": {"id": 1, "title": "It breaks", "body": "on start"},
              "repository": {"id": 9, "name": "hello", "description": "A greeting"}, "sender": {"login": "ana"}},
    "Docker Hub": {"callback_url": "https://hub.example/cb", "push_data": {"pushed_at": 1, "tag": "7"},
                   "repository": {"name": "shop", "description": "Sells", "repo_name": "ana/shop"}},
    "PagerDuty": {"event": {"id": "01", "event_type": "incident.triggered", "resource_type": "incident",
                            "data": {"id": "Q1", "title": "CPU high", "html_url": "https://p.example/1"}}},
    "PagerDuty Events API": {"event_action": "trigger", "dedup_key": "d",
                             "payload": {"summary": "CPU high", "source": "web-1", "severity": "critical"}},
    "Opsgenie": {"action": "Create", "integrationName": "hook", "source": {"name": "", "type": "API"},
                 "alert": {"alertId": "1", "message": "CPU high", "tags": ["web"], "priority": "P1"}},
    "Better Stack": {"data": {"id": "1", "type": "incident", "attributes": {
        "name": "shop.example", "cause": "Status 500", "url": "https://shop.example"}}},
    "Cal.com": {"triggerEvent": "BOOKING_CREATED", "createdAt": "2026-01-01T10:00:00Z",
                "payload": {"title": "30 min with Ana", "type": "30min", "startTime": "2026-01-02T10:00:00Z"}},
    "Typeform": {"event_id": "01", "event_type": "form_response", "form_response": {
        "form_id": "x", "submitted_at": "2026-01-01T10:00:00Z", "answers": [{"type": "text", "text": "Yes"}]}},
    "Shopify": {"id": 1, "email": "ana@example.org", "name": "#1001", "total_price": "9.90", "currency": "EUR",
                "customer": {"first_name": "Ana"}, "line_items": [{"id": 2, "title": "Mug", "quantity": 1}]},
    "Checkmk": {"host": "web-1", "event": "UP -> DOWN", "output": "no answer", "state": "DOWN"},
    "GCP": {"version": "1.2", "incident": {"incident_id": "0", "state": "open", "summary": "CPU of web-1 is high",
            "policy_name": "CPU", "url": "https://console.example/1", "documentation": {"content": "see wiki"}}},
    "GCP Pub/Sub": {"message": {"data": "ZQ==", "messageId": "1"}, "subscription": "projects/p/subscriptions/s"},
    "Graylog": {"event_definition_title": "Errors", "event_definition_description": "Many errors",
                "event": {"id": "01", "message": "Errors: count() > 5", "priority": 2, "fields": {}}, "backlog": []},
    "New Relic": {"id": "1", "issueUrl": "https://nr.example/1", "title": "CPU > 90 on web-1", "priority": "CRITICAL",
                  "state": "ACTIVATED", "alertPolicyNames": ["web"]},
    "TeamCity": {"eventType": "BUILD_FINISHED", "payload": {"id": 7, "number": "12", "status": "FAILURE",
                 "buildTypeId": "Shop_Build", "statusText": "Tests failed: 1"}},
    "Jenkins": {"name": "shop", "url": "job/shop/", "build": {"full_url": "https://ci.example/job/shop/12/",
                "number": 12, "phase": "FINALIZED", "status": "FAILURE", "log": ""}},
    "Diun": {"diun_version": "4", "hostname": "nas", "status": "new", "provider": "docker",
             "image": "docker.io/ana/shop:7", "hub_link": "https://hub.example", "platform": "linux/amd64"},
    "Argo CD": {"app": "shop", "status": "Degraded", "message": "Deployment exceeded its deadline"},
    "Woodpecker": {"repo": {"id": 1, "full_name": "ana/shop", "name": "shop"},
                   "pipeline": {"number": 12, "event": "push", "status": "failure", "message": "Fix it\n"}},
    "Frigate": {"type": "new", "before": {"id": "1"}, "after": {"id": "1", "camera": "door", "label": "person"}},
    "Frigate review": {"type": "new", "before": {"id": "1"}, "after": {"camera": "door", "severity": "alert",
                       "data": {"objects": ["person"], "zones": ["porch"]}}},
    "AWS SNS": {"Type": "Notification", "MessageId": "1", "TopicArn": "arn:aws:sns:eu-west-1:1:alarms",
                "Subject": "ALARM: CPU in EU", "Message": '{"AlarmName": "CPU", "NewStateValue": "ALARM"}',
                "Signature": "x" * 300, "UnsubscribeURL": "https://sns.example"},
    "AWS SNS confirmation": {"Type": "SubscriptionConfirmation", "Message": "You have chosen to subscribe.\nVisit it",
                             "SubscribeURL": "https://sns.example/confirm", "Token": "x" * 300},
    "AWS EventBridge": {"version": "0", "id": "1", "detail-type": "EC2 Instance State-change Notification",
                        "source": "aws.ec2", "detail": {"instance-id": "i-1", "state": "stopped"}},
    "Azure Event Grid": [{"id": "1", "eventType": "Microsoft.Storage.BlobCreated", "subject": "/blobs/a.txt",
                          "data": {"api": "PutBlob", "url": "https://blob.example/a.txt"}}],
    "Prometheus": [{"labels": {"alertname": "TargetDown"}, "annotations": {"summary": "web-1 down",
                    "description": "for 5 min"}, "generatorURL": "https://prom.example/g"}],
    "Plex": {"event": "media.play", "user": True, "owner": True, "Account": {"id": 1, "title": "ana"},
             "Server": {"title": "nas"}, "Metadata": {"type": "episode", "title": "Pilot"}},
    "Seerr": {"notification_type": "MEDIA_PENDING", "event": "New Movie Request", "subject": "Dune (2021)",
              "message": "Paul goes to a desert.", "image": "https://i.example/a.jpg", "media": {"status": "PENDING"},
              "extra": []},
    "Tautulli": {"subject": "Tautulli (nas)", "body": "ana started Pilot"},
    "Gatus": {"text": "Health check for web failed"},
    "UptimeRobot": {"monitorID": "1", "monitorURL": "https://shop.example", "monitorFriendlyName": "Shop",
                    "alertType": "1", "alertTypeFriendlyName": "Down", "alertDetails": "HTTP 500"},
    "Twilio": {"MessageSid": "SM1", "From": "+491", "To": "+492", "Body": "Are you there?", "NumMedia": "0"},
    "Duplicati": {"message": "Duplicati Backup report for nas", "Data": {"MainOperation": "Backup"}},
    "Mattermost": {"text": "#### Build failed\n| a | b |", "username": "ci", "props": {"card": "x"}},
    "Stripe": {"id": "evt_1", "object": "event", "type": "charge.succeeded", "data": {"object": {"id": "ch_1",
               "amount": 990, "currency": "eur"}}},
    "Jira": {"timestamp": 1, "webhookEvent": "jira:issue_created", "user": {"displayName": "Ana", "name": "ana"},
             "issue": {"id": "1", "key": "SHOP-1", "fields": {"summary": "It breaks"}}},
    "Linear": {"action": "create", "type": "Issue", "data": {"id": "1", "title": "It breaks", "number": 3},
               "url": "https://linear.example/SHOP-3"},
    "Zabbix": {"subject": "Problem: CPU high", "message": "web-1 at 97 %", "severity": "High"},
    "Statuspage": {"page": {"id": "1", "status_description": "Partial outage"}, "incident": {
        "name": "Slow API", "status": "investigating", "incident_updates": [{"body": "We look at it."}]}},
    "Traefik Hub": {"data": {"nested": {"deeper": {"reason": "x"}}}},
    "Uptime Kuma by form": {"data": '{"heartbeat": {"status": 0, "msg": "503"}, "msg": "[Shop] [Down] 503",'
                                    ' "monitor": {"name": "Shop"}}'},
    "Healthchecks by query": {"n": "Nightly", "s": "down"},
    "Event Grid by Teams": {"type": "AdaptiveCard", "body": [{"type": "TextBlock", "text": "Blob created"}]},
    "Feishu": {"msg_type": "interactive", "card": {"header": {"title": {"tag": "plain_text", "content": "Down"}},
               "elements": [{"tag": "div", "text": {"tag": "lark_md", "content": "Shop is down"}}]}},
    "Apprise": {"version": "1.0", "title": "Backup", "message": "done", "attachments": [
        {"filename": "a.jpg", "base64": "/9j/", "mimetype": "image/jpeg"}], "type": "info"},
}  # fmt: skip
