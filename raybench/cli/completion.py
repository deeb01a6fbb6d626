"""`raybench completion SHELL`: the script by which a shell completes commands, benchmarks, options and choices."""

from __future__ import annotations

import click

VARIABLE = "_RAYBENCH_COMPLETE"  # by which click is asked for completions, named after the program
HOW = {  # to install it, as a comment of the script
    "bash": "raybench completion bash > ~/.local/share/bash-completion/completions/raybench   (make the folder first)",
    "zsh": "raybench completion zsh > ~/.zfunc/_raybench   (with `fpath+=~/.zfunc` before compinit in ~/.zshrc)",
    "fish": "raybench completion fish > ~/.config/fish/completions/raybench.fish",
}
NOW = {
    "bash": "source <(raybench completion bash)",
    "zsh": "source <(raybench completion zsh)",
    "fish": "raybench completion fish | source",
}


@click.command()
@click.argument("shell", type=click.Choice(sorted(HOW)))
def completion(shell: str) -> None:
    """Print the script that completes raybench's words in bash, zsh or fish.

    \b
    For this terminal:   source <(raybench completion bash)
    For good:            raybench completion bash > ~/.local/share/bash-completion/completions/raybench
    The first lines of each script say how it is installed.
    """
    from click.shell_completion import get_completion_class

    from raybench.cli.commands import cli

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(cli, {}, "raybench", VARIABLE)
    lines = (script.source_template % script.source_vars()).strip().splitlines()
    first = [lines.pop(0)] if lines[0].startswith("#compdef") else []  # where zsh wants it
    click.echo("\n".join([*first, f"# For good: {HOW[shell]}", f"# For this terminal: {NOW[shell]}", *lines]))
