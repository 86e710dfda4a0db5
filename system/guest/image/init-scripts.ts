/**
 * The two shell scripts of the guest: `init`, the first process, and the agent through which the emulator runs
 * commands (see ../agent.ts for the other end and the protocol).
 *
 * They are written for busybox's ash. Nothing is configured here beyond what every Debian would have mounted and
 * named: modules are loaded, and devices used, by commands that the emulator sends, so that each can be seen to fail.
 */

/** Serial ports as the guest names them: the console, and the agent's line. */
export const consoleDevice = 'ttyS0';
export const agentDevice = 'ttyS1';

/** Parameter on the kernel's command line that asks for a shell on the console. */
export const shellParameter = 'hca.shell';

export const initScript = `#!/bin/sh
export PATH=/usr/sbin:/usr/bin HOME=/root TERM=\${TERM:-linux}
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /run /tmp /root
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t configfs configfs /sys/kernel/config 2>/dev/null
ln -sf /proc/self/fd /dev/fd
hostname "$(sed -n 's/.*hca\\.name=\\([^ ]*\\).*/\\1/p' /proc/cmdline)"
ulimit -l unlimited
ip link set lo up
if grep -qw ${shellParameter} /proc/cmdline; then
  (
    printf '\\nThe adapter is attached. End the shell (exit, or Ctrl-D) to power the guest off.\\n'
    setsid sh -c 'exec sh -l <>/dev/${consoleDevice} >&0 2>&1'
    : >/run/shell-ended
  ) >/dev/${consoleDevice} &
fi
while :; do agent </dev/${agentDevice} >/dev/${agentDevice} 2>/dev/${consoleDevice}; done
`;

/**
 * Reads lines "token seconds command", the command in base64, and answers each with
 * RS token " begin" LF, the command's output, RS token " end " exit-status LF. The first line it sends is RS "ready" LF.
 * Commands run one after the other in a session of their own; one that takes longer is killed with all of its session.
 */
export const agentScript = `#!/bin/sh
stty raw -echo 2>/dev/null
printf '\\036ready\\n'
while read -r token seconds encoded; do
  printf '\\036%s begin\\n' "$token"
  printf %s "$encoded" | base64 -d >/run/command
  setsid timeout -s KILL "$seconds" sh /run/command </dev/null 2>&1 &
  session=$!
  wait "$session"
  status=$?
  [ "$status" = 137 ] && kill -KILL -- "-$session" 2>/dev/null
  printf '\\036%s end %s\\n' "$token" "$status"
done
`;
