#!/usr/bin/env python3
"""Runs a command in a virtual machine of its own, with Debian's stock kernel and this machine's files.

  bed.py --bed FOLDER fetch
  bed.py --bed FOLDER run [--guests N [--ssh]] [--cpus N] [--memory MIB] [--rdma] [--setup TEXT] [--seconds S] -- COMMAND...

The guest sees this machine's root read-only under an overlay in memory, so every program installed or built here
runs there at the same path, and what it writes is gone afterwards. The kernel is fetched from Debian once and unpacked
in FOLDER, never installed. QEMU emulates the processor: slow, and alike on every machine. The command's output is
printed, its status returned; 125: the guest did not come up, or SETUP (shell text, run first as root) failed; 124: the
command did not end in time. The folder named by VERBENA_TEST_FOLDER is shared, writable, under its own path.

With --rdma the guest has a network card, and on it the kernel's own RDMA device in software (Soft-RoCE): rxe0 over
eth0, 10.0.0.1, ready when COMMAND begins.

With --guests 2 there are two of them, their cards linked to each other and to nothing else, 10.0.0.1 and 10.0.0.2. COMMAND
runs in both, and finds 1 or 2 in VERBENA_GUEST; the status is the first one that is not 0.

With --ssh as well COMMAND runs in the first only, as root; the second is there until COMMAND ends, or kills it. They are called g1
and g2, and `ssh g2` and `ssh g1` work in both without a question."""

import argparse
import contextlib
import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(1, str(HERE.parent))
import ssh_access

BOOT_MODULES = ("virtio_pci", "9p", "9pnet_virtio", "overlay")

# The port is ready once it is active and its table has the GID of the IPv4 address: both come after the command that
# asks for them has returned. crc32_generic: without it the kernel refuses to make the device, and says ENOENT.
SOFT_ROCE = """number=%d
modprobe -a virtio_net crc32_generic rdma_rxe rdma_ucm
ip link set eth0 up
ip addr add 10.0.0.$number/24 dev eth0
rdma link add rxe0 type rxe netdev eth0
port=/sys/class/infiniband/rxe0/ports/1
ready() { grep -q ACTIVE $port/state && cat $port/gids/* 2>/dev/null | grep -q ffff:0a00:000$number && ls /dev/infiniband/uverbs0; }
for i in $(seq 100); do ready && break; sleep 0.1; done
ready
"""

# Logins after the first share its connection: proving keys takes seconds on an emulated processor. The first guest waits for
# the second.
SHARED_LOGIN = "ControlMaster auto\nControlPath /run/ssh-%h\nControlPersist yes\n"
REACH_THE_OTHER = """for i in $(seq 60); do ssh -o ConnectTimeout=2 g2 true && break; sleep 0.5; done
ssh g2 true
"""


def ssh_setup(folder, number):
    return (f"mkdir /run/sshd\n{ssh_access.join(folder)}{ssh_access.serve(folder)} >/guest/sshd.log 2>&1 &\n"
            + (REACH_THE_OTHER if number == 1 else ""))


def network_card(number, guests, folder):
    """Two guests' cards are joined by a socket, which the first one makes."""
    link = "user,id=net0,restrict=on"
    if guests == 2:
        server = "on" if number == 1 else "off"
        link = f"stream,id=net0,server={server},addr.type=unix,addr.path={folder}/link"
    return ("-netdev", link, "-device", f"virtio-net-pci,romfile=,netdev=net0,mac=52:54:00:00:00:{number:02x}")


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def output_of(*command, **how):
    return subprocess.run(command, check=True, capture_output=True, text=True, **how).stdout


class Bed:
    """The kernel and the first file system of all guests."""

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.kernel = self.folder / "kernel"
        self.initramfs = self.folder / "initramfs.gz"

    def version(self):
        return next((self.kernel / "lib/modules").iterdir()).name

    def image(self):
        return self.kernel / "boot" / f"vmlinuz-{self.version()}"

    def fetch(self):
        """Idempotent; what is there is complete, since it is put in place last."""
        if self.initramfs.exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.kernel, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as work:
            depends = output_of("apt-cache", "depends", "--important", "linux-image-amd64")
            package = next(word for word in depends.split() if word.startswith("linux-image-"
                           ) and word != "linux-image-amd64")
            os.chmod(work, 0o777)  # apt downloads as a user of its own
            output_of("apt-get", "download", "-qq", package, cwd=work)
            tree = Path(work, "tree")
            output_of("dpkg", "-x", str(next(Path(work).glob("*.deb"))), str(tree))
            output_of("depmod", "-b", str(tree), next((tree / "lib/modules").iterdir()).name)
            tree.rename(self.kernel)
            self.make_initramfs(Path(work, "first"))

    def make_initramfs(self, root):
        for name in ("bin", "modules", "proc", "sys", "dev", "host", "memory", "system"):
            (root / name).mkdir(parents=True)
        shutil.copy("/bin/busybox", root / "bin/busybox")
        for name in ("sh", "mount", "mkdir", "insmod", "echo", "chroot"):
            (root / "bin" / name).symlink_to("busybox")
        shutil.copy(HERE / "init", root / "init")
        (root / "init").chmod(0o755)
        order = []
        for module in BOOT_MODULES:
            listing = output_of("modprobe", "-d", str(self.kernel), "-S", self.version(), "--show-depends", module)
            for line in listing.splitlines():
                path = Path(line.split()[1])
                if line.startswith("insmod") and path.name not in order:
                    order.append(path.name)
                    shutil.copy(path, root / "modules")
        (root / "modules/order").write_text("".join(name + "\n" for name in order))
        made = self.initramfs.with_suffix(".new")
        subprocess.run("find . | cpio -o -H newc --quiet | gzip -1 >" + shlex.quote(str(made)), shell=True, check=True,
                       cwd=root)
        made.rename(self.initramfs)


class Guest:
    """One virtual machine, from start to power-off. Ends with the `with` block, whatever happens in it."""

    def __init__(self, bed, number, command, cpus, memory, setup, devices=("-nic", "none")):
        self.share = Path(tempfile.mkdtemp(prefix="verbena-guest-"))
        shared = os.environ.get("VERBENA_TEST_FOLDER", "")
        self.outside = Path(shared) if shared else None
        (self.share / "shared").mkdir()
        shutil.copy(HERE / "boot.sh", self.share)
        settings = {"KERNEL": bed.kernel, "NAME": f"g{number}", "SETUP": setup, "SHARED": shared}
        (self.share / "settings").write_text("".join(f"{k}={shlex.quote(str(v))}\n" for k, v in settings.items()))
        (self.share / "command").write_text(f"export VERBENA_GUEST={number}\ncd {shlex.quote(os.getcwd())}\n{command}\n")
        self.console = open(self.share / "console", "wb")
        self.machine = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(cpus), "-m", str(memory),
             "-display", "none", "-serial", "stdio", "-monitor", "none", "-no-reboot", *devices,
             "-kernel", str(bed.image()), "-initrd", str(bed.initramfs),
             "-append", "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check",
             "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
             "-virtfs", f"local,path={self.share},mount_tag=guest,security_model=none"],
            stdin=subprocess.DEVNULL, stdout=self.console, stderr=subprocess.STDOUT, preexec_fn=die_with_parent)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.machine.poll() is None:
            self.machine.kill()
        self.machine.wait()
        self.console.close()
        shutil.rmtree(self.share, ignore_errors=True)

    def wait(self, seconds):
        """The command's status; 125 or 124 where there is none."""
        deadline = time.monotonic() + seconds
        while self.machine.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        ended = self.machine.poll() is not None
        status = self.share / "status"
        if status.exists():
            return int(status.read_text())
        print((self.share / "console").read_text(errors="replace")[-3000:], file=sys.stderr)
        return 125 if ended or not (self.share / "output").exists() else 124

    def leave_shared(self):
        """What it wrote into the shared folder, for who runs the bed."""
        if self.outside:
            shutil.copytree(self.share / "shared", self.outside, dirs_exist_ok=True)

    def output(self):
        path = self.share / "output"
        return path.read_text(errors="replace") if path.exists() else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bed", required=True, help="folder for the kernel")
    parser.add_argument("what", choices=("fetch", "run"))
    parser.add_argument("--guests", type=int, choices=(1, 2), default=1)
    parser.add_argument("--cpus", type=int, default=0, help="of each guest; default: 2, or 1 of two guests")
    parser.add_argument("--memory", type=int, default=1536)
    parser.add_argument("--rdma", action="store_true")
    parser.add_argument("--ssh", action="store_true", help="of two guests: they are hosts of one job")
    parser.add_argument("--setup", default="")
    parser.add_argument("--seconds", type=float, default=300)
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:at])
    command = sys.argv[at + 1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the guest ends with us

    bed = Bed(options.bed)
    bed.fetch()
    if options.what == "fetch":
        return 0
    if options.guests == 2 and not options.rdma:
        parser.error("two guests have nothing in common without --rdma")
    if options.ssh and options.guests != 2:
        parser.error("--ssh is between two guests")
    with contextlib.ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="verbena-link-")))
        if options.ssh:
            ssh_access.prepare(folder, {"g1": "10.0.0.1", "g2": "10.0.0.2"})
            with open(folder / "ssh_config", "a") as config:
                config.write(SHARED_LOGIN)
        guests = []
        deadline = time.monotonic() + options.seconds
        for number in range(1, options.guests + 1):
            setup, devices = options.setup, ("-nic", "none")
            if options.ssh:
                setup = ssh_setup(folder, number) + setup
            if options.rdma:
                setup, devices = SOFT_ROCE % number + setup, network_card(number, options.guests, folder)
            cpus = options.cpus or (2 if options.guests == 1 else 1)
            guests.append(ending.enter_context(
                Guest(bed, number, "sleep infinity" if options.ssh and number == 2 else shlex.join(command), cpus,
                      options.memory, setup, devices)))
            while options.guests == 2 and not (folder / "link").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
        status = 0
        for number, guest in enumerate(guests[:1] if options.ssh else guests, 1):
            ended = guest.wait(max(deadline - time.monotonic(), 1))
            if status == 0:  # of files with one name, those of the guest that the status is of
                guest.leave_shared()
            status = status or ended
            if len(guests) > 1:
                print(f"== guest {number}")
            sys.stdout.write(guest.output())
            sys.stdout.flush()
    return status


if __name__ == "__main__":
    sys.exit(main())
