"""The ring that live charts read from."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from workbench.tail import Place, Tail


def rows(*numbers):
    return [{"n": n} for n in numbers]


def read(batches):
    return [row["n"] for _, some in batches for row in some]


def test_a_reader_goes_on_from_where_it_left_off():
    tail = Tail()
    tail.put("steps", rows(1, 2))
    first, place = tail.since(Place())
    assert first == [("steps", rows(1, 2))]
    assert tail.since(place) == ([], place)
    tail.put("tokens", rows(3))
    tail.put("tokens", [])
    again, place = tail.since(place)
    assert again == [("tokens", rows(3))]
    assert place.missed == 0


def test_a_late_reader_is_told_what_it_missed():
    tail = Tail(most_rows=3)
    for n in range(10):
        tail.put("steps", rows(n))
    late, place = tail.since()
    assert read(late) == [7, 8, 9]
    assert place.missed == 7


def test_one_batch_larger_than_the_ring_is_kept_whole():
    tail = Tail(most_rows=2)
    tail.put("steps", rows(*range(5)))
    assert read(tail.since()[0]) == list(range(5))


@given(st.lists(st.one_of(st.integers(1, 4), st.none()), max_size=60), st.integers(1, 12))
def test_what_is_seen_and_what_is_missed_is_all_there_was(moves, most):
    """A number puts so many rows, none lets the reader read."""
    tail, place, put, seen = Tail(most), Place(), 0, []
    for move in [*moves, None]:
        if move is None:
            batches, place = tail.since(place)
            seen += read(batches)
        else:
            tail.put("steps", rows(*range(put, put + move)))
            put += move
    assert seen == sorted(set(seen))
    assert len(seen) + place.missed == put


def test_many_threads_lose_nothing():
    tail = Tail()
    writers = [threading.Thread(target=lambda: [tail.put("steps", rows(1)) for _ in range(500)]) for _ in range(4)]
    for writer in writers:
        writer.start()
    place, seen = Place(), 0
    while any(writer.is_alive() for writer in writers):
        batches, place = tail.since(place)
        seen += len(read(batches))
    for writer in writers:
        writer.join()
    batches, place = tail.since(place)
    assert seen + len(read(batches)) == 2000
    assert place.missed == 0
