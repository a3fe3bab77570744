"""Traces in every format give the jobs that were written, and bad rows are counted, not guessed at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mara.errors import InputError
from mara.workload.traces import read as reading
from mara.workload.traces.read import FORMATS, Jobs, read_trace

SWF_LINE = "{id} {submit} 3 {run} {used} -1 -1 {asked} -1 -1 1 7 1 -1 1 -1 -1 -1"
FILES = {
    "plain": "id,submit_time,duration,deadline,nodes,group\na,0,60,600,1,x\nb,30.5,120,900,2,y\n",
    "swf": "; Version: 2\n; MaxNodes: 8\n"
    + SWF_LINE.format(id="a", submit=0, run=60, used=1, asked=4).replace("a", "1", 1)
    + "\n"
    + SWF_LINE.format(id=2, submit=30.5, run=120, used=-1, asked=2)
    + "\n",
    "philly": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "a,u1,x,0,4,1,COMPLETED,1970-01-01 00:00:00,1970-01-01 00:00:10,1970-01-01 00:01:10,60,10\n"
    "b,u2,y,2,4,1,FAILED,1970-01-01 00:00:30.500,1970-01-01 00:01:00,1970-01-01 00:03:00,120,30\n",
    "alibaba": "job_id,num_inst,submit_time,num_cpu,num_gpu,gpu_type,duration,user\n"
    "a,1,0,8.0,0.5,T4,60,x\nb,2,30.5,8.0,1.0,T4,120,y\n",
    "elasticflow": "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\n"
    "a,0,200,x,600,64,1,60\nb,30.5,90,y,900,64,2,120\n",
    "sacct": "JobID|User|Submit|Start|End|Elapsed|NNodes|State\n"
    "a|x|1970-01-01T00:00:00|1970-01-01T00:00:10|1970-01-01T00:01:10|00:01:00|1|COMPLETED\n"
    "a.batch||1970-01-01T00:00:10|1970-01-01T00:00:10|1970-01-01T00:01:10|00:01:00|1|COMPLETED\n"
    "b|y|1970-01-01T00:00:30.500|1970-01-01T00:01:00|1970-01-01T00:03:00|0-00:02:00|2|TIMEOUT\n",
}


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "trace.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("name", FILES)
def test_a_format_is_recognised_and_read(tmp_path: Path, name: str) -> None:
    jobs = read_trace(write(tmp_path, FILES[name]))
    assert jobs.format == name
    np.testing.assert_allclose(jobs.submit, [0, 30.5])
    np.testing.assert_allclose(jobs.duration, [60, 120])
    np.testing.assert_array_equal(jobs.nodes, [1, 2])
    assert jobs.bad == ()
    assert not jobs.reordered
    assert set(FORMATS) == set(FILES)
    if name in ("plain", "elasticflow"):
        np.testing.assert_allclose(jobs.deadline, [600, 900])
    else:
        assert np.isnan(jobs.deadline).all()
    if name != "swf":
        assert jobs.id.tolist() == ["a", "b"]
        assert jobs.group.tolist() == ["x", "y"]


def test_other_shapes_of_the_same_formats(tmp_path: Path) -> None:
    published = "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n"
    jobs = read_trace(write(tmp_path, published + "u,16566,40285,bert,21347,64,4,3890\n"))
    assert (jobs.format, jobs.deadline[0], jobs.nodes[0]) == ("elasticflow", 21347, 4)
    jobs = read_trace(write(tmp_path, "job_id,submission_time,duration,num_gpu\nu,16566,3890,4\n"))
    assert (jobs.format, np.isnan(jobs.deadline[0])) == ("elasticflow", True)
    table = "n1,i1,u,Terminated,100.0,160.0\nn2,i2,u,Running,200.0,\n"
    jobs = read_trace(write(tmp_path, table))
    assert (jobs.format, len(jobs), jobs.duration[0], jobs.bad[0].lines) == ("alibaba", 1, 60, (2,))
    pods = "name,cpu_milli,num_gpu,qos,creation_time,deletion_time,scheduled_time\np,4000,8,LS,5,75,15\n"
    jobs = read_trace(write(tmp_path, pods))
    assert (jobs.submit[0], jobs.duration[0], jobs.nodes[0]) == (5, 60, 8)
    jobs = read_trace(write(tmp_path, "submit_time;duration\r\n0,5;1,5\r\n"))
    assert (jobs.submit[0], jobs.duration[0]) == (0.5, 1.5)
    jobs = read_trace(write(tmp_path, "\ufeffsubmit_time,demand\n3,5\n"))
    assert jobs.in_slots
    jobs = read_trace(write(tmp_path, "JobID|Submit|ElapsedRaw\n1_2|2026-01-01T00:00:00+01:00|9\n"))
    assert jobs.submit[0] == 1767222000
    simulated = "time,job_id,num_gpu,submit_time,start_time,end_time,ddl,JCT\n107,4,1,90,93,107,113,17\n"
    jobs = read_trace(write(tmp_path, simulated))
    assert (jobs.format, jobs.submit[0], jobs.duration[0], jobs.deadline[0]) == ("elasticflow", 90, 14, 113)
    helios = "job_id,user,gpu_num,submit_time,duration,deadline\na,u,2,5,60,90\n"
    assert read_trace(write(tmp_path, helios)).deadline[0] == 90
    longer = "; MaxProcs: 8\n1 5 10 100 4 -1 -1 4 3600 -1 -1 0 -1 -1 -1 -1 -1 -1 0\n"
    jobs = read_trace(write(tmp_path, longer))
    assert (jobs.format, jobs.submit[0], jobs.duration[0], jobs.nodes[0]) == ("swf", 5, 100, 4)
    trailing_bar = "JobID|Submit|Elapsed|NNodes|\n7|2026-01-01T00:00:00|00:01:00|2|\n7.batch||00:01:00|1|\n"
    jobs = read_trace(write(tmp_path, trailing_bar))
    assert (len(jobs), jobs.duration[0], jobs.nodes[0]) == (1, 60, 2)


def test_sacct_without_what_is_needed_is_told_how_to_ask(tmp_path: Path) -> None:
    for text in (
        "JobID|JobName|State\n15|a|COMPLETED\n",
        "JobID JobName State\n----- ----- -----\n15 a COMPLETED\n",
    ):
        with pytest.raises(InputError, match="make it by sacct -a -X --parsable2 --format=JobID,User,Submit"):
            read_trace(write(tmp_path, text))


BAD = "id,submit_time,duration,deadline,nodes\n"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("b,-5,60,,1", "negative submit time"),
        ("b,nan,60,,1", "submit time is not a finite number"),
        ("b,inf,60,,1", "submit time is not a finite number"),
        ("b,1e300,60,,1", "submit time is out of range"),
        ("b,soon,60,,1", "submit time is not a number"),
        ("b,2026-13-45 00:00:00,60,,1", "submit time is neither"),
        ("b,,60,,1", "no submit time"),
        ("b,5,0,,1", "zero duration"),
        ("b,5,-3,,1", "negative duration"),
        ("b,5,,,1", "no duration"),
        ("b,5,1_000,,1", "duration is not a finite number"),
        ("b,5,60,5,1", "deadline must be after submit time"),
        ("b,5,60,2,1", "deadline must be after submit time"),
        ("b,5,60,,9", "needs more than the 8 nodes there are"),
        ("b,5,60,,0", "zero or fewer nodes"),
        ("b,5,60,,1e308", "needs more than the 8 nodes there are"),
        ("a,5,60,,1", "id was there before"),
        ("b,5", "too few columns"),
    ],
)
def test_bad_rows_are_skipped_with_reason_and_line_or_stop(tmp_path: Path, row: str, reason: str) -> None:
    path = write(tmp_path, f"{BAD}a,0,60,,1\n\n{row}\nc,7,60,,1\n")
    jobs = read_trace(path, most_nodes=8)
    assert jobs.id.tolist() == ["a", "c"]
    assert jobs.skipped == 1
    assert jobs.bad[0].lines == (4,)
    assert reason in jobs.bad[0].reason
    with pytest.raises(InputError, match=r"line 4: ") as caught:
        read_trace(path, most_nodes=8, strict=True)
    assert reason in str(caught.value)


def test_ends_before_starts_and_jobs_that_run_on_are_reported(tmp_path: Path) -> None:
    head = "JobID|Submit|Start|End|State\n"
    rows = [
        "1|2026-01-01T00:00:00|2026-01-01T00:10:00|2026-01-01T00:05:00|COMPLETED",
        "2|2026-01-01T00:00:00|2026-01-01T00:10:00|Unknown|RUNNING",
        "3|2026-01-01T00:00:00|Unknown|Unknown|CANCELLED by 0",
        "4|2026-01-01T00:00:00|2026-01-01T00:10:00|2026-01-01T00:15:00|COMPLETED",
    ]
    jobs = read_trace(write(tmp_path, head + "\n".join(rows)))
    assert jobs.id.tolist() == ["4"]
    assert [(bad.reason.split(" (")[0], bad.lines) for bad in jobs.bad] == [
        ("end before start", (2,)),
        ("not ended yet", (3,)),
        ("no duration", (4,)),
    ]


def test_elapsed_times_of_ages_are_out_of_range(tmp_path: Path) -> None:
    rows = "1|5|99999999999:00:00\n2|5|01:00\n3|5|-1:00\n"
    jobs = read_trace(write(tmp_path, "JobID|Submit|Elapsed\n" + rows))
    assert (jobs.id.tolist(), jobs.duration.tolist()) == (["2"], [60])
    assert {bad.lines for bad in jobs.bad} == {(2,), (4,)}


def test_unsorted_rows_are_sorted_and_said_so(tmp_path: Path) -> None:
    jobs = read_trace(write(tmp_path, "id,submit_time,duration\nb,9,1\na,3,1\nc,9,2\n"))
    assert jobs.id.tolist() == ["a", "b", "c"]
    assert jobs.line.tolist() == [3, 2, 4]
    assert jobs.notes() == ["rows were not sorted by submit time; sorted"]


def test_many_bad_rows_keep_the_first_lines_only(tmp_path: Path) -> None:
    text = "submit_time,duration\n" + "5,-1\n" * 40 + "5,1\n"
    bad = read_trace(write(tmp_path, text)).bad[0]
    assert (bad.count, bad.lines) == (40, (2, 3, 4, 5, 6))
    assert str(bad) == "40 rows: negative duration (lines 2, 3, 4, 5, 6, ...)"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"  \n\n", "empty"),
        (b"; only\n; comments\n", "but comments"),
        (b"\x7fELF\x00\x00" * 50, "not a text file"),
        (b"\x1f\x8b\x08zip", "not a text file"),
        (b"submit_time,duration\n", "no job in it"),
        (b"submit_time,duration\n1,0\n", "no job in it .*zero duration"),
        (b"submit_time:duration\n1:5\n", "no known trace format"),
        (b"when,how_long\n1,5\n", "no column submit_time"),
        (b'submit_time,duration\n"1,5\n' + b"2,5\n" * 50_000, "line .*not a row of cells"),
        (b"submit_time," + b"x" * 200_000, "longer than"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_trace(write(tmp_path, content))
    assert "\n" not in str(caught.value)
    assert "trace.txt" in str(caught.value)


def test_folders_devices_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder"):
        read_trace(tmp_path)
    with pytest.raises(InputError, match="not a regular file"):
        read_trace("/dev/zero")
    with pytest.raises(InputError, match="No such file"):
        read_trace(tmp_path / "none.csv")
    with pytest.raises(InputError, match="unknown; known are swf"):
        read_trace(write(tmp_path, FILES["plain"]), format="excel")
    with pytest.raises(InputError, match="not swf format"):
        read_trace(tmp_path / "trace.txt", format="swf")


def test_too_many_jobs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_JOBS", 3)
    with pytest.raises(InputError, match="more than 3 jobs"):
        read_trace(write(tmp_path, "submit_time,duration\n" + "1,1\n" * 4))


def test_one_huge_name_does_not_widen_all(tmp_path: Path) -> None:
    rows = "\n".join(f"{i},{i},5" for i in range(3000))
    jobs = read_trace(write(tmp_path, f"id,submit_time,duration\n{'x' * 90_000},0,5\n{rows}\n"))
    assert len(jobs) == 3001
    assert jobs.id.nbytes < 100_000


def sound(jobs: Jobs) -> bool:
    return bool(
        (np.diff(jobs.submit) >= 0).all()
        and (jobs.submit >= 0).all()
        and (jobs.duration > 0).all()
        and (jobs.nodes >= 1).all()
        and not (jobs.deadline <= jobs.submit).any()
        and len(set(jobs.id.tolist())) == len(jobs)
    )


@settings(deadline=None)
@given(name=st.sampled_from(sorted(FILES)), data=st.data())
def test_damaged_files_give_sound_jobs_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    content = bytearray(FILES[name].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        junk = data.draw(
            st.sampled_from([b"", b"\n", b",", b"-", b'"', b"9" * 30, b"\xff", b"nan", b"|", b";"])
        )
        content[place : place + data.draw(st.integers(0, 3))] = junk
    path = tmp_path_factory.mktemp("damaged") / "trace.txt"
    path.write_bytes(bytes(content))
    try:
        jobs = read_trace(path)
    except InputError as error:
        said = str(error)
    else:
        said = "" if sound(jobs) else "unsound\n"
    assert "\n" not in said
