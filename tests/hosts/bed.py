#!/usr/bin/env python3
"""bed.py N [slurm | --shared-pids] -- PROGRAM ARGUMENT...: runs a program beside N pretend hosts, and takes them down again.

Each host (h1, h2, ...) has its own network, host name, processes, /dev/shm and sshd, and the files of this machine. They are
joined by a bridge in a network namespace of its own, so nothing of this machine's network is touched. The program finds
in VERBENA_HOSTS_BED a folder with a script `in`: `in 2 COMMAND...` runs a command on host h2. `ssh h2` works there without
a question. Needs root, iproute2 and openssh-server. Whatever ends the bed ends everything on the hosts.

With `slurm` all but the last are nodes of a Slurm cluster, which the last one is the login host of (slurm.py).

With --shared-pids the hosts see each other's processes (Open MPI hangs without); then what is left on them by a bed that is
killed itself stays."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(1, str(Path(__file__).resolve().parent.parent))
import slurm
import ssh_access

NETWORK = "10.78.91."


def quiet(*command, check=True):
    return subprocess.run(command, check=check, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Bed:
    def __init__(self, count, shared_pids=False, with_slurm=False):
        self.count = count
        self.shared_pids = shared_pids
        self.with_slurm = with_slurm
        self.network = NETWORK
        self.name = f"vb{os.getpid()}"
        self.folder = Path(tempfile.mkdtemp(prefix="verbena-hosts-"))
        self.folder.chmod(0o755)
        self.spaces = []
        self.hosts = []
        self.daemons = []

    def space(self, suffix):
        name = f"{self.name}-{suffix}"
        quiet("ip", "netns", "add", name)
        self.spaces.append(name)
        return name

    def up(self):
        ssh_access.prepare(self.folder, {f"h{i}": f"{NETWORK}{i}" for i in range(1, self.count + 1)})
        Path("/run/sshd").mkdir(exist_ok=True)
        switch = self.space("sw")
        quiet("ip", "-n", switch, "link", "add", "name", "joint", "type", "bridge")
        quiet("ip", "-n", switch, "link", "set", "joint", "up")
        for i in range(1, self.count + 1):
            space = self.space(i)
            quiet("ip", "-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{i}", "netns", switch)
            quiet("ip", "-n", switch, "link", "set", f"p{i}", "master", "joint", "up")
            quiet("ip", "-n", space, "addr", "add", f"{NETWORK}{i}/24", "dev", "eth0")
            quiet("ip", "-n", space, "link", "set", "eth0", "up")
            quiet("ip", "-n", space, "link", "set", "lo", "up")
            self.start(i, space)
        (self.folder / "in").write_text(
            f'#!/bin/sh\n# in I COMMAND...: runs a command on host hI\nhost=$1; shift\n'
            f'exec nsenter -t "$(cat {self.folder}/pid$host)" -n -u -i -m {"" if self.shared_pids else "-p"} env -C "$PWD" HOME=/root '
            f'{slurm.variable(self) if self.with_slurm else ""} "$@"\n')
        (self.folder / "in").chmod(0o755)
        if self.with_slurm:
            slurm.start(self)

    def start(self, i, space):
        setup = f"""set -e
hostname h{i}
mount -t tmpfs tmpfs /dev/shm
{ssh_access.join(self.folder)}exec {ssh_access.serve(self.folder)}"""
        log = open(self.folder / f"sshd{i}.log", "w")
        own_pids = [] if self.shared_pids else ["-p", "-f", "--kill-child", "--mount-proc"]
        host = subprocess.Popen(["ip", "netns", "exec", space, "unshare", "-u", "-i", "-m", *own_pids, "sh", "-c", setup],
                                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent)
        self.hosts.append(host)
        limit = time.monotonic() + 15
        while time.monotonic() < limit:
            # `ip netns exec` becomes unshare, whose child is the host's first process.
            children = Path(f"/proc/{host.pid}/task/{host.pid}/children")
            first = children.read_text().split() if children.exists() else []
            if self.shared_pids:
                first = [str(host.pid)]
            if first and "Server listening" in (self.folder / f"sshd{i}.log").read_text():
                (self.folder / f"pid{i}").write_text(first[0])
                return
            if host.poll() is not None:
                break
            time.sleep(0.02)
        raise SystemExit(f"bed: host h{i} does not come up: {(self.folder / f'sshd{i}.log').read_text()}")

    def daemon(self, i, name, *command):
        """Starts a program of a host's that stays until the host goes."""
        with open(self.folder / f"{name}.log", "w") as log:
            process = subprocess.Popen([str(self.folder / "in"), str(i), *command], stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log, preexec_fn=die_with_parent)
        self.daemons.append(process)
        return process

    def down(self):
        for space in self.spaces if self.shared_pids else []:
            for pid in quiet("ip", "netns", "pids", space, check=False).stdout.split():
                quiet("kill", "-9", pid, check=False)
        for host in self.hosts:
            host.kill()  # and with it, by --kill-child, everything on that host
        for process in self.hosts + self.daemons:
            process.wait()
        for space in self.spaces:
            quiet("ip", "netns", "del", space, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    words = sys.argv[1:]
    flags = {"slurm": False, "--shared-pids": False}
    while len(words) > 1 and words[1] in flags:
        flags[words.pop(1)] = True
    if len(words) < 3 or not words[0].isdigit() or words[1] != "--":
        raise SystemExit(__doc__)
    count, program = int(words[0]), words[2:]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    bed = Bed(count, flags["--shared-pids"], flags["slurm"])
    try:
        bed.up()
        return subprocess.run(program, env={**os.environ, "VERBENA_HOSTS_BED": str(bed.folder)}).returncode
    finally:
        bed.down()


if __name__ == "__main__":
    sys.exit(main())
