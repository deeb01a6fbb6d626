"""`python -m raybench`, the same as the `raybench` command."""

from raybench.cli.commands import main

if __name__ == "__main__":
    main()
