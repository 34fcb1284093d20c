"""`python -m casework` is the `casework` command."""

from casework.cli import main

if __name__ == "__main__":
    main()
