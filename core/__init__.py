"""The rules of the service: what an account, an alert, a device and a notification may do."""
