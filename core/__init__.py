"""The rules of the service, for accounts, alerts, devices, notifications, heartbeats and metrics."""
