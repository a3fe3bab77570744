"""A real SLURM of two virtual nodes on the loopback interface, without systemd: for tests, and to try the profile.

``python tests/slurm/cluster.py COMMAND ...`` starts one, runs the command on it and stops it again.

Needs root, and Debian's packages munge, slurmctld, slurmd and slurm-client (installed if they are missing). The
steps of SLURM's jobs look for their configuration in /etc/slurm only, so it is linked there meanwhile.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PACKAGES = ("munge", "slurmctld", "slurmd", "slurm-client")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel")
CONFIGURATION = Path("/etc/slurm/slurm.conf")
NODES = ("node1", "node2")
TEMPLATE = """\
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=2,batch_sched_delay=0
SlurmdParameters=config_overrides
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
DefMemPerCPU=200
MinJobAge=300
KillWait=2
ReturnToService=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class NoSlurmError(Exception):
    """Why there can be no SLURM here."""


def missing_programs() -> list[str]:
    """Programs that are not installed; Debian keeps the daemons in /usr/sbin."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    return [program for program in PROGRAMS if shutil.which(program, path=path) is None]


def install() -> None:
    """Install what is missing.

    Raises:
        NoSlurmError: if that is not possible here.
    """
    if os.geteuid() != 0:
        raise NoSlurmError("starting SLURM's daemons needs root")
    if CONFIGURATION.is_symlink() and not CONFIGURATION.exists():
        CONFIGURATION.unlink()  # of a cluster here that was killed
    if CONFIGURATION.exists():
        raise NoSlurmError(f"this machine has a SLURM of its own ({CONFIGURATION})")
    if not missing_programs():
        return
    if shutil.which("apt-get") is None:
        raise NoSlurmError(f"{missing_programs()[0]} is missing, and there is no apt-get to install it with")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run(
            ["apt-get", *command], env=environment, capture_output=True, text=True, timeout=300, check=False
        )
    if missing_programs():
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise NoSlurmError(f"apt-get could not install {', '.join(PACKAGES)}: {reason}")


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
    """Wait for a condition.

    Raises:
        TimeoutError: that names ``what`` if it does not come about.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"after {seconds:g} s: not yet {what}")
        time.sleep(0.2)


def free_ports(count: int) -> list[int]:
    """Ports on the loopback interface that nobody listens at."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def squeue(*options: str) -> list[str]:
    """Lines of ``squeue``, without a heading."""
    command = ["squeue", "--noheader", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.split()


def _nodes_idle() -> bool:
    command = ["sinfo", "--noheader", "--Node", "--format=%t"]
    states = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout.split()
    return states == ["idle"] * len(NODES)


@contextmanager
def running_cluster(memory_mb: int = 8000, processors: int = 2) -> Iterator[Path]:
    """Start a cluster of two nodes, each said to have so much; yield the folder of its logs; stop it at the end.

    Raises:
        NoSlurmError: if there can be none here.
        TimeoutError: if it does not come up; the message holds the daemons' logs.
    """
    install()
    folder = Path(tempfile.mkdtemp(prefix="slurm"))
    daemons: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> None:
        with (folder / f"{len(daemons)}-{command[0]}.out").open("wb") as out:
            environment = os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
            daemons.append(
                subprocess.Popen(
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
                )
            )

    try:
        controller_port, *node_ports = free_ports(1 + len(NODES))
        lines = TEMPLATE.format(
            host=socket.gethostname().split(".")[0], folder=folder, controller_port=controller_port
        )
        for node, port in zip(NODES, node_ports, strict=True):
            lines += (
                f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} "
                f"CPUs={processors} RealMemory={memory_mb} State=UNKNOWN\n"
            )
            (folder / f"spool-{node}").mkdir()
        (folder / "state").mkdir()
        (folder / "slurm.conf").write_text(lines)
        CONFIGURATION.parent.mkdir(exist_ok=True)
        CONFIGURATION.symlink_to(folder / "slurm.conf")
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        files = [f"--{name}-file={folder / f'munge.{name}'}" for name in ("key", "pid", "log", "seed")]
        start("munged", "--foreground", "--force", f"--socket={folder / 'munge.socket'}", *files)
        wait_until((folder / "munge.socket").exists, "a munged that listens")
        start("slurmctld", "-D")
        for node in NODES:
            start("slurmd", "-D", "-N", node)
        wait_until(_nodes_idle, "two idle nodes")
        yield folder
    except TimeoutError as error:
        logs = "\n".join(f"{log.name}:\n{log.read_text()[-2000:]}" for log in sorted(folder.glob("*.out")))
        raise TimeoutError(f"{error}\n{logs}") from None
    finally:
        if CONFIGURATION.is_symlink():
            if len(daemons) > 1 and daemons[1].poll() is None:
                subprocess.run(["scancel", "--user=root"], check=False, timeout=30)
            CONFIGURATION.unlink()
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in reversed(daemons):
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # stop the cluster then, too
    try:
        with running_cluster():
            raise SystemExit(subprocess.run(sys.argv[1:], check=False).returncode)
    except NoSlurmError as error:
        raise SystemExit(f"error: {error}") from None
