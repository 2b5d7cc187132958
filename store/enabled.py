"""The conditions that leave disabled accounts out, for every query that finds a credential or something to push.

So a disabled account is to all others as if it did not exist, and nothing of it is deleted.
"""

IS_ENABLED = "a.disabled_at IS NULL"  # the account, where a query joins it
DISABLED = "SELECT seq FROM account WHERE disabled_at IS NOT NULL"
OF_ENABLED = f"NOT IN ({DISABLED})"  # after the name of a column with the account's number
