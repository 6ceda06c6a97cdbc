"""``python -m workbench.cli``: the command without its script."""

from workbench.cli import main

if __name__ == "__main__":
    main()
