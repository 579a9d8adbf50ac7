#!/bin/sh
# Second stage of a guest, in the overlay: makes a small system, runs /guest/command, leaves its status in /guest/status
# and powers off. /guest/settings holds KERNEL (folder of the unpacked kernel package), NAME, SETUP (shell text), SHARED.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
. /guest/settings
mkdir -p /lib/modules /dev/pts /dev/shm
mount --bind "$KERNEL/lib/modules" /lib/modules
mount -t tmpfs memory /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs memory /run
chmod 1777 /tmp /dev/shm
ln -sf /proc/self/fd /dev/fd
hostname "$NAME"
ip link set lo up
printf '127.0.0.1 localhost %s\n' "$NAME" >/etc/hosts
ulimit -l unlimited
if [ -n "$SHARED" ]; then
  mkdir -p "$SHARED"
  mount --bind /guest/shared "$SHARED"
fi
if sh -ec "$SETUP" >/guest/setup.log 2>&1; then
  sh /guest/command >/guest/output 2>&1
  echo $? >/guest/status
else
  cat /guest/setup.log >/guest/output
  echo 125 >/guest/status
fi
sync
echo o >/proc/sysrq-trigger
sleep 10
