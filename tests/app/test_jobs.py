import logging
import threading

import pytest

from app.jobs import KEPT, Jobs
from core.errors import BrokenFile, Cancelled, LimitExceeded, NotFound


@pytest.fixture
def jobs():
    made = Jobs()
    yield made
    made.close()


def wait_until_cancelled(progress, cancelled):
    started.set()
    while not cancelled():
        threading.Event().wait(0.005)
    raise Cancelled("was stopped")


started = threading.Event()


def test_a_job_gives_its_result_and_tells_how_far_it_is(jobs):
    go, told = threading.Event(), threading.Event()

    def work(progress, cancelled):
        progress(3, 12, unit="bytes", message="reading")
        told.set()
        go.wait(10)
        progress(12)
        return "answer"

    job = jobs.submit("kind", "Title", work, artifact="a", subject="s", actor="ann")
    assert told.wait(10)
    now = jobs.get(job.id)
    assert (now.state, now.done, now.total, now.unit, now.message, now.share) == (
        "running", 3, 12, "bytes", "reading", 0.25,
    )  # fmt: skip
    go.set()
    done = jobs.wait(job.id, 10)
    assert (done.state, done.result, done.share, done.unit, done.active) == ("done", "answer", 1.0, "bytes", False)
    assert done.created_at <= done.started_at <= done.finished_at


def test_two_run_at_a_time_and_the_background_does_not_wait_for_them(jobs):
    gate, running = threading.Event(), threading.Semaphore(0)

    def work(progress, cancelled):
        running.release()
        gate.wait(10)

    submitted = [jobs.submit("k", "t", work) for _ in range(3)]
    assert running.acquire(timeout=10)
    assert running.acquire(timeout=10)
    background = jobs.submit("k", "t", lambda progress, cancelled: 1, background=True)
    assert jobs.wait(background.id, 10).state == "done"
    assert sorted(jobs.get(j.id).state for j in submitted) == ["queued", "running", "running"]
    gate.set()
    assert {jobs.wait(j.id, 10).state for j in submitted} == {"done"}


def test_an_active_job_of_the_same_key_is_shared(jobs):
    gate = threading.Event()
    first = jobs.submit("k", "t", lambda progress, cancelled: gate.wait(10), key="same")
    assert jobs.submit("k", "t", lambda progress, cancelled: 1, key="same").id == first.id
    gate.set()
    jobs.wait(first.id, 10)
    assert jobs.submit("k", "t", lambda progress, cancelled: 1, key="same").id != first.id


def test_a_running_job_stops_and_a_waiting_one_is_over_at_once(jobs):
    started.clear()
    running = [jobs.submit("k", "t", wait_until_cancelled) for _ in range(2)]
    waiting = jobs.submit("k", "t", lambda progress, cancelled: 1)
    assert started.wait(10)
    assert jobs.cancel(waiting.id).state == "cancelled"
    for job in running:
        jobs.cancel(job.id)
        assert jobs.wait(job.id, 10).state == "cancelled"


def test_a_failure_is_one_sentence_and_only_a_surprise_is_logged_whole(jobs, caplog):
    def broken(progress, cancelled):
        raise BrokenFile("is cut off", path="m.onnx", byte=7)

    def surprise(progress, cancelled):
        raise ZeroDivisionError("secret detail")

    with caplog.at_level(logging.ERROR, "modelglass"):
        job = jobs.wait(jobs.submit("k", "t", broken).id, 10)
        assert (job.state, job.error) == ("failed", "m.onnx: is cut off (byte 7)")
        job = jobs.wait(jobs.submit("k", "t", surprise).id, 10)
    assert job.state == "failed"
    assert "ZeroDivisionError" in job.error
    assert "secret" not in job.error
    assert jobs.submit("k", "t", lambda progress, cancelled: 1).active


def test_jobs_of_a_model_are_listed_newest_first_and_stopped_by_kind(jobs):
    a = jobs.submit("scan", "t", wait_until_cancelled, artifact="a")
    b = jobs.submit("trace", "t", wait_until_cancelled, artifact="a")
    c = jobs.submit("scan", "t", lambda progress, cancelled: 1, artifact="b")
    assert [j.id for j in jobs.list("a")] == [b.id, a.id]
    assert [j.id for j in jobs.list()] == [c.id, b.id, a.id]
    jobs.cancel_of("a", "scan")
    assert jobs.wait(a.id, 10).state == "cancelled"
    assert jobs.get(b.id).active


def test_ended_jobs_are_told_and_only_the_last_are_kept():
    ended = []
    jobs = Jobs(ended.append)
    ids = [jobs.submit("k", "t", lambda progress, cancelled: 1).id for _ in range(KEPT + 20)]
    for job in ids[-2:]:
        jobs.wait(job, 10)
    jobs.close()
    assert sorted(j.id for j in ended) == sorted(ids)
    assert len(jobs.list()) == KEPT
    with pytest.raises(NotFound):
        jobs.get(ids[0])


def test_closing_stops_everything():
    jobs = Jobs()
    submitted = [jobs.submit("k", "t", wait_until_cancelled) for _ in range(4)]
    jobs.close()
    assert {jobs.get(j.id).state for j in submitted} == {"cancelled"}


def test_turns_go_by_persons_not_by_jobs(jobs):
    order, gate = [], threading.Event()

    def held(progress, cancelled):
        gate.wait(10)

    def note(name):
        return lambda progress, cancelled: order.append(name)

    block = [jobs.submit("k", "t", held, actor="ann") for _ in range(2)]
    ann = [jobs.submit("k", f"ann {n}", note(f"ann {n}"), actor="ann") for n in range(3)]
    bob = [jobs.submit("k", f"bob {n}", note(f"bob {n}"), actor="bob") for n in range(2)]
    cat = jobs.submit("k", "cat", note("cat"), actor="cat")
    # ann has two at work, so bob and cat come first, then bob's second before ann's
    places = {jobs.get(j.id).title: jobs.get(j.id).place for j in (*ann, *bob, cat)}
    assert places == {"bob 0": 1, "cat": 2, "bob 1": 3, "ann 0": 4, "ann 1": 5, "ann 2": 6}
    gate.set()
    for job in (*block, *ann, *bob, cat):
        assert jobs.wait(job.id, 10).state == "done"
        assert jobs.get(job.id).place == 0
    assert {"bob 0", "cat"} == set(order[:2])


def test_runs_share_a_budget_of_memory():
    jobs, gate = Jobs(memory=100), threading.Event()
    big = jobs.submit("k", "t", lambda progress, cancelled: gate.wait(10), memory=70)
    second = jobs.submit("k", "t", lambda progress, cancelled: 1, memory=40)
    third = jobs.submit("k", "t", lambda progress, cancelled: 1, memory=10)  # would fit, but passes nobody
    assert (jobs.get(second.id).state, jobs.get(second.id).place) == ("queued", 1)
    assert (jobs.get(third.id).state, jobs.get(third.id).place) == ("queued", 2)
    with pytest.raises(LimitExceeded, match="Lower the memory limit"):
        jobs.submit("k", "t", lambda progress, cancelled: 1, memory=101)
    gate.set()
    for job in (big, second, third):
        assert jobs.wait(job.id, 10).state == "done"
    jobs.close()


def test_a_job_that_leaves_the_queue_lets_the_others_move_up(jobs):
    running = [jobs.submit("k", "t", wait_until_cancelled) for _ in range(2)]
    first, second = (jobs.submit("k", "t", lambda progress, cancelled: 1) for _ in range(2))
    assert [jobs.get(j.id).place for j in (first, second)] == [1, 2]
    jobs.cancel(first.id)
    assert jobs.get(second.id).place == 1
    for job in running:
        jobs.cancel(job.id)
    assert jobs.wait(second.id, 10).state == "done"
