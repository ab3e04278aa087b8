"""A build's remarks about itself are dropped; warnings never are."""

import logging

import pytest

from course_site.site.log_filter import DROPPED, quieten


@pytest.fixture
def heard(caplog):
    quieten()
    quieten()
    caplog.set_level(logging.INFO)
    yield caplog
    for name in DROPPED:
        logger = logging.getLogger(name)
        logger.filters.clear()


def test_what_is_copied_is_not_told(heard):
    logging.getLogger("mkdocs.plugins.mkdocs_jupyter").info("Copied jupyter file: %s to %s", "a", "b")
    logging.getLogger("mkdocs.commands.build").info("Building documentation to directory: %s", "/scratch")

    assert heard.messages == []


def test_a_warning_is_told_whatever_it_says(heard):
    logging.getLogger("mkdocs.plugins.mkdocs_jupyter").warning("Copied jupyter file: not whole")

    assert heard.messages == ["Copied jupyter file: not whole"]


def test_other_remarks_stay(heard):
    logging.getLogger("mkdocs.commands.build").info("Documentation built in %.2f seconds", 3.0)
    logging.getLogger("mkdocs.hooks.course").info("Copied jupyter file")

    assert heard.messages == ["Documentation built in 3.00 seconds", "Copied jupyter file"]
