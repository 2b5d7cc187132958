"""What the commands print."""


def printed(result):
    """The one line on stdout of a command that went well."""
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    (line,) = result.stdout.splitlines()
    assert result.stdout == line + "\n"
    return line


def said(result):
    """The one line on stderr of a command that was refused."""
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    (line,) = result.stderr.splitlines()
    return line


def lines_of(service, *command):
    """The lines that a command prints, each split at its tabs."""
    result = service.flask(*command)
    assert result.exit_code == 0, result.output
    return [line.split("\t") for line in result.output.splitlines()]
