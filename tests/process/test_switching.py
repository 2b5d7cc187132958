import sys
import threading

import pytest

from process import switching


def test_threads_switch_more_often_within_the_block_and_as_before_after_it():
    before = sys.getswitchinterval()
    with pytest.raises(ZeroDivisionError), switching.often():
        assert sys.getswitchinterval() == pytest.approx(switching.SHORT_S)
        raise ZeroDivisionError
    assert sys.getswitchinterval() == before


def test_the_short_interval_lasts_until_the_last_thread_leaves_its_block():
    before, leaves = sys.getswitchinterval(), threading.Event()
    entered = threading.Event()

    def work():
        with switching.often():
            entered.set()
            leaves.wait()

    other = threading.Thread(target=work)
    other.start()
    entered.wait()
    with switching.often():
        pass
    assert sys.getswitchinterval() == pytest.approx(switching.SHORT_S)
    leaves.set()
    other.join()
    assert sys.getswitchinterval() == before
