"""Turns: first come first served, places counted, a ticket left frees the next at once."""

import threading
import time

from playground.turns import Turns


def test_tickets_get_their_turn_in_order_and_know_their_place():
    turns = Turns()
    first, second, third = turns.join(), turns.join(), turns.join()
    assert [ticket.wait(0) for ticket in (first, second, third)] == [0, 1, 2]
    second.leave()
    assert third.wait(0) == 1
    first.leave()
    first.leave()
    assert third.wait(0) == 0
    assert len(turns) == 1


def test_only_one_at_a_time_uses_what_is_waited_for():
    turns, inside, most, order = Turns(), [0], [0], []

    def use(name):
        ticket = turns.join()
        while ticket.wait(0.05):
            pass
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        order.append(name)
        time.sleep(0.005)
        inside[0] -= 1
        ticket.leave()

    threads = [threading.Thread(target=use, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert most == [1]
    assert sorted(order) == list(range(8))
