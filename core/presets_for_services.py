"""Presets for code hosting, error tracking and payments; `presets` says how they are written."""

from core.preset import Preset, first_of

GITHUB_URL = first_of(
    *("comment.html_url", "review.html_url", "pull_request.html_url", "issue.html_url", "discussion.html_url"),
    *("release.html_url", "workflow_run.html_url", "workflow_job.html_url", "check_run.html_url"),
    *("forkee.html_url", "pages.0.html_url", "alert.html_url", "security_advisory.references.0.url", "compare"),
    *("repository.html_url",),
)
GITLAB_URL = first_of("object_attributes.url", "deployable_url", "url", "project.web_url", "repository.homepage")
GITEA_URLS = (
    *("comment.html_url", "pull_request.html_url", "issue.html_url", "release.html_url", "compare_url"),
    *("workflow_run.html_url", "workflow_job.html_url", "forkee.html_url", "package.html_url"),
)
SENTRY_URL = first_of("url", "data.event.web_url", "data.error.web_url", "data.issue.web_url", "data.web_url")

GITHUB = Preset(
    id="github",
    name="GitHub",
    icon="git-branch",
    color="#24292F",
    title=first_of("repository.full_name", "organization.login", otherwise="GitHub"),
    body=first_of("sender.login", "pusher.name", otherwise="GitHub")
    + " "
    + first_of("action", otherwise="→")
    + " "
    + first_of(
        *("pull_request.title", "issue.title", "discussion.title", "release.tag_name", "deployment.environment"),
        *("workflow_run.name", "workflow_job.name", "check_run.name", "forkee.full_name", "pages.0.title"),
        *("member.login", "alert.rule.description", "alert.security_advisory.summary", "security_advisory.summary"),
        *("ref", "zen", "starred_at"),
    )
    + " "
    + first_of(
        *("deployment_status.state", "workflow_run.conclusion", "workflow_job.conclusion", "check_run.conclusion"),
        *("review.state", "ref_type"),
    )
    + f"\n{GITHUB_URL}\n"
    + first_of("comment.body", "review.body", "head_commit.message"),
    steps=(
        "In the repository, open Settings → Webhooks → Add webhook.",
        "Payload URL: the address above. Content type: application/json. Leave Secret empty.",
        "Choose the events, then Add webhook. GitHub sends a ping right away.",
    ),
    sample={
        "action": "opened",
        "repository": {"full_name": "octo/hello", "node_id": "R_1"},
        "sender": {"login": "octocat"},
        "issue": {"title": "It works", "html_url": "https://github.com/octo/hello/issues/1"},
    },
    marks=(("repository.node_id", "sender.login"), ("zen", "hook_id"), ("security_advisory.ghsa_id",)),
    url=GITHUB_URL,
    tag="{{ workflow_run.html_url | default: workflow_job.html_url | default: check_run.html_url"
    ' | default: "" | hash }}',
)
GITLAB = Preset(
    id="gitlab",
    name="GitLab",
    icon="git-merge",
    color="#E24329",
    title=first_of("project.path_with_namespace", "project_name", "group.full_path", otherwise="GitLab"),
    body=first_of("user_name", "user.name", otherwise="GitLab")
    + ": {{ object_kind }} "
    + first_of(
        *("build_name", "object_attributes.title", "object_attributes.ref", "issue.title", "merge_request.title"),
        *("snippet.title", "tag", "environment", "ref"),
    )
    + " "
    + first_of("object_attributes.action", "object_attributes.status", "build_status", "status", "action")
    + f"\n{GITLAB_URL}\n"
    + first_of("object_attributes.note", "commits.0.title", "commit.message"),
    steps=(
        "In the project, open Settings → Webhooks → Add new webhook.",
        "URL: the address above. Choose the triggers, then Add webhook.",
        "To try it, open Test and choose an event.",
    ),
    sample={
        "object_kind": "push",
        "user_name": "Ana",
        "ref": "refs/heads/main",
        "project": {"path_with_namespace": "octo/hello", "web_url": "http://127.0.0.1/octo/hello"},
        "commits": [{"title": "It works"}],
    },
    marks=(("object_kind",),),
    url=GITLAB_URL,
)
GITEA = Preset(
    id="gitea",
    name="Gitea",
    icon="git-pull-request",
    color="#609926",
    title=first_of("repository.full_name", otherwise="Gitea"),
    body=first_of("sender.login", "pusher.login", otherwise="Gitea")
    + " "
    + first_of("action", otherwise="→")
    + " "
    + first_of(
        *("pull_request.title", "issue.title", "release.tag_name", "workflow_run.display_title"),
        *("workflow_job.name", "forkee.full_name", "page", "package.name", "ref"),
    )
    + " "
    + first_of("workflow_run.conclusion", "workflow_job.conclusion", "ref_type")
    + "\n"
    + first_of(
        *(*GITEA_URLS, "page", "action", "sha"),
        otherwise="deleted",  # a created branch or tag has its sha, a deleted one nothing of all this
    )
    + "\n"
    + first_of("comment.body", "review.content", "head_commit.message", "commits.0.message"),
    steps=(
        "In the repository, open Settings → Webhooks → Add webhook → Gitea (Forgejo and Gogs have their own entry).",
        "Target URL: the address above. Method: POST, application/json. Leave Secret empty.",
        "Choose the events, then Add webhook. Its page has Test delivery.",
    ),
    sample={
        "ref": "refs/heads/main",
        "compare_url": "http://127.0.0.1:3000/octo/hello/compare/1...2",
        "repository": {"full_name": "octo/hello", "stars_count": 0},
        "sender": {"login": "ana", "username": "ana"},
        "commits": [{"message": "It works"}],
    },
    marks=(("repository.stars_count", "sender.username"),),
    url=first_of(*GITEA_URLS, "repository.html_url"),
    tag='{{ workflow_run.html_url | default: workflow_job.html_url | default: "" | hash }}',
)
SENTRY = Preset(
    id="sentry",
    name="Sentry",
    icon="bug",
    color="#6C5FC7",
    title=first_of(
        *("data.event.title", "data.error.title", "data.issue.title", "data.description_title"),
        *("data.metric_alert.title", "message"),
        otherwise="Sentry",
    ),
    body=first_of(
        *("project_name", "data.issue.project.name", "data.project_slug", "data.event.environment"),
        *("data.triggered_rule",),
        otherwise="Sentry",
    )
    + " "
    + first_of("action", otherwise="alert")
    + ": "
    + first_of(
        *("culprit", "data.event.culprit", "data.error.culprit", "data.issue.culprit", "data.description_text"),
        *("data.comment",),
        otherwise="no details",
    )
    + f"\n{SENTRY_URL}",
    steps=(
        "Open Settings → Developer Settings and create an internal integration.",
        "Webhook URL: the address above. Turn on Alert Rule Action, and choose issue events if you want them.",
        "In an alert rule, add the action that sends a notification via your integration.",
    ),
    sample={"project_name": "shop", "culprit": "a shell", "message": "It works", "event": {"event_id": "1"}},
    marks=(("installation.uuid", "data"), ("project_name", "culprit", "event.event_id")),
    url=SENTRY_URL,
    tag=first_of("data.issue.id", "data.event.issue_id") + "/" + first_of("data.metric_alert.id"),
    resolved_when="action = resolved",
)
STRIPE = Preset(
    id="stripe",
    name="Stripe",
    icon="credit-card",
    color="#635BFF",
    title="Stripe: {{ type }}",
    body=first_of(
        *("data.object.description", "data.object.customer_email", "data.object.customer_details.email"),
        *("data.object.email", "data.object.id", "id"),
    )
    + "\nAmount (smallest unit, such as cents): "
    + first_of("data.object.amount", "data.object.amount_total", "data.object.amount_due", otherwise="none")
    + ' {{ data.object.currency | default: "" | upcase }} '
    + first_of("data.object.status"),
    steps=(
        "Open Developers → Webhooks and add a destination.",
        "Choose the events, then Webhook endpoint, with the address above as its URL.",
        "Stripe sends amounts in the smallest unit of the currency: 4900 is 49.00 EUR, but 4900 JPY.",
    ),
    sample={
        "object": "event",
        "type": "charge.succeeded",
        "api_version": "2020-08-27",
        "data": {
            "object": {
                "object": "charge",
                "amount": 4900,
                "currency": "eur",
                "description": "It works",
                "status": "succeeded",
            }
        },
    },
    marks=(("data.object.object", "type", "api_version"),),
)
