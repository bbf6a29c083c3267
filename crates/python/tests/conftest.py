"""What all tests share."""

from pathlib import Path

import pytest

DATA = Path(__file__).parents[3] / "testdata"


@pytest.fixture
def data() -> Path:
    """The test files of the repository."""
    return DATA
