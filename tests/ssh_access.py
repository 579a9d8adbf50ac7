"""Lets root go from one host of a test bed to each other, and to itself, by ssh and without a question: a key that is
good for this bed only, names for the hosts, and shell text by which a host takes part. Needs openssh's client and server."""

import shutil
import subprocess


def prepare(folder, addresses):
    """Files for all hosts, in `folder`, which all must see under this name: `addresses` maps names to addresses."""
    key, authorized = folder / "key", folder / "authorized"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, stdin=subprocess.DEVNULL)
    shutil.copy(f"{key}.pub", authorized)
    authorized.chmod(0o600)
    (folder / "ssh_config").write_text(
        f"StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\nIdentityFile {key}\n")
    names = "".join(f"{address} {name}\n" for name, address in addresses.items())
    (folder / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n" + names)


def join(folder):
    """Shell text: from here on this host knows the others. Its root's files are hidden, since what a login runs may be slow."""
    return f"""mount --bind {folder}/hosts /etc/hosts
mount -t tmpfs tmpfs /root
mkdir -m 700 ~root/.ssh
cp {folder}/ssh_config ~root/.ssh/config
"""


def serve(folder):
    """The command that lets the others in; it goes on until it is killed, and says "Server listening" when it is ready."""
    return (f"/usr/sbin/sshd -D -e -f /dev/null -o HostKey={folder}/key -o AuthorizedKeysFile={folder}/authorized"
            " -o StrictModes=no -o UsePAM=no -o PermitRootLogin=yes -o PidFile=none")
