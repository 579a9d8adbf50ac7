"""A Slurm cluster on the pretend hosts of bed.py: its own munged and slurmctld on the last host, a slurmd on each other one, with
folders, keys and sockets below the bed's folder, and ports in the hosts' networks. Nothing of a Slurm or munge that this machine
may have is used or disturbed. Needs slurmctld, slurmd, slurm-client and munge; ends with the hosts."""

import os
import subprocess
import time

# Of the settings that are not plain names and paths:
# linuxproc, none: no control groups are needed. config_overrides: a node has the processors it says, not those of this machine.
# TmpFS: hosts share /tmp here, and Slurm's PMIx server makes a folder of the same name on each node.
# The scheduler looks at once rather than after seconds, and a job that does not end is killed after five.
CONFIGURATION = """\
ClusterName=bed
SlurmctldHost={login}({network}{count})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1
KillWait=5
MessageTimeout=60
TmpFS={folder}/tmp.%n
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE
"""


def place(bed):
    return bed.folder / "slurm"


def variable(bed):
    return f"SLURM_CONF={place(bed)}/slurm.conf"


def start(bed):
    folder, nodes = place(bed), range(1, bed.count)
    for name in ("state", *(f"{kind}.h{i}" for kind in ("spool", "tmp") for i in nodes)):
        (folder / name).mkdir(parents=True)
    key = folder / "munge.key"
    key.touch(0o600)
    key.write_bytes(os.urandom(128))
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(folder=folder, login=f"h{bed.count}", network=bed.network, count=bed.count)
        + "".join(f"NodeName=h{i} NodeAddr={bed.network}{i} CPUs=4 State=UNKNOWN\n" for i in nodes))
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # else slurmd wants /sys/fs/cgroup, which is not mounted here
    bed.daemon(bed.count, "munged", "/usr/sbin/munged", "--foreground", "--force", f"--key-file={key}",
               f"--socket={folder}/munge.socket", f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log",
               f"--seed-file={folder}/munge.seed")
    wait(bed, lambda: (folder / "munge.socket").exists())
    bed.daemon(bed.count, "slurmctld", "/usr/sbin/slurmctld", "-D")
    for i in nodes:
        bed.daemon(i, f"slurmd{i}", "/usr/sbin/slurmd", "-D")
    wait(bed, lambda: states(bed) == ["idle"] * len(nodes))


def states(bed):
    answer = subprocess.run([str(bed.folder / "in"), str(bed.count), "sinfo", "-h", "-N", "-o", "%t"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return answer.stdout.split()


def wait(bed, ready):
    limit = time.monotonic() + 60
    while not ready():
        if time.monotonic() > limit or any(process.poll() is not None for process in bed.daemons):
            said = "".join(f"{log.name}: {log.read_text()[-2000:]}\n" for log in sorted(bed.folder.glob("*.log")))
            raise SystemExit(f"bed: Slurm does not come up:\n{said}")
        time.sleep(0.05)
