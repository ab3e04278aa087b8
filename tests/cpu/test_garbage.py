"""Python looks for garbage while tests run, and not among what was there before the first of them."""

import gc


def test_garbage_is_looked_for_and_not_among_what_the_tests_are_made_of():
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
