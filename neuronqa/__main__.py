"""`python -m neuronqa` is `neuronqa`."""

from neuronqa.cli.main import run

if __name__ == "__main__":
    run()
