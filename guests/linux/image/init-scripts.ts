/**
 * The shell scripts of the guest: `init`, the first process; the agent through which the emulator runs commands (see
 * ../agent-line.ts for the other end and the protocol); and those that run the two sides of a test.
 *
 * They are written for busybox's ash. Only the mounts and names of every Debian are configured here: the emulator sends
 * commands that load modules and use devices, so that each failure is visible.
 */

/** Serial ports by their names in the guest: the console, and the agent's line. */
export const consoleDevice = 'ttyS0';
const agentDevice = 'ttyS1';

/** Kernel command-line option: the console has a shell, for a guest that is run by hand. */
export const shellParameter = 'hca.shell';

export const initScript = `#!/bin/sh
export PATH=/usr/sbin:/usr/bin HOME=/root TERM=linux
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /run /tmp /root /var/log /var/cache/opensm
ln -sfn /run /var/run
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t configfs configfs /sys/kernel/config 2>/dev/null
ln -sf /proc/self/fd /dev/fd
hostname "$(sed -n 's/.*hca\\.name=\\([^ ]*\\).*/\\1/p' /proc/cmdline)"
ulimit -l unlimited
ip link set lo up
grep -qw ${shellParameter} /proc/cmdline &&
  { while :; do (cd /root; exec setsid -c sh -l) </dev/${consoleDevice} >/dev/${consoleDevice} 2>&1; done & }
while :; do agent </dev/${agentDevice} >/dev/${agentDevice} 2>/dev/${consoleDevice}; done
`;

/**
 * Reads lines "token seconds command", the command as `printf %b` takes it, and answers each with RS token " begin" LF, the
 * command's output, RS token " end " exit-status LF. The first line it sends is RS "ready" LF. Commands run one after the other
 * in a session of their own; one that takes longer is killed with its whole session. They run in the foreground: background
 * processes of a shell without job control ignore Ctrl-C indefinitely.
 *
 * Starting a process takes an emulated processor tens of milliseconds: each command starts one, and another shell, started at
 * the beginning, watches the time of all. A pipe passes it the seconds of each command, and an empty line at its end.
 */
export const agentScript = `#!/bin/sh
stty raw -echo 2>/dev/null
rm -f /run/watch; mkfifo /run/watch; exec 8<>/run/watch
while read -r seconds <&8; do
  read -r -t "$seconds" end <&8 && continue
  read -r session </run/session
  kill -KILL -- "-$session"
  read -r end <&8
done </dev/null >/dev/null 2>&1 &
printf '\\036ready\\n'
while read -r token seconds text; do
  printf '\\036%s begin\\n' "$token"
  printf %b "$text" >/run/command
  echo "$seconds" >&8
  setsid sh -c 'exec 8>&-; echo $$ >/run/session; . /run/command' </dev/null 2>&1
  status=$?
  echo >&8
  printf '\\036%s end %s\\n' "$token" "$status"
done
`;

/** The TCP port of perftest and of libibverbs' ping-pong programs. */
export const meetingPort = 18_515;
/** The port as /proc/net/tcp prints it. */
const meetingPortText = meetingPort.toString(16).toUpperCase();

/**
 * Scripts that run both sides of a test. `test-server COMMAND` starts one side and returns when it listens; `test-server-end`
 * waits for its end, kills it after SECONDS, and returns its exit status; `pair SERVER CLIENT` does both and runs the other
 * side in between. The server's output is shown if something failed.
 *
 * Each calls a function in `test-sides`, and waits without starting a process: on a pipe without a writer.
 */
export const testScripts: Readonly<Record<string, string>> = {
  'test-sides': `[ -p /run/pause ] || mkfifo /run/pause
pause() { read -r -t 0.03 nothing <>/run/pause; }
listens() { grep -qs ':${meetingPortText} .* 0A ' /proc/net/tcp /proc/net/tcp6; }
start_server() {
  rm -f /run/server.status
  { eval "exec $1" >/run/server.log 2>&1 & echo $! >/run/server.pid; wait $!; echo $? >/run/server.status; } </dev/null >/dev/null 2>&1 &
  until listens; do
    [ -s /run/server.status ] && { cat /run/server.log; echo "the server ended with $(cat /run/server.status) before it listened"; return 1; }
    pause
  done
  return 0
}
end_server() {
  read -r started </proc/uptime
  until [ -s /run/server.status ]; do
    read -r now </proc/uptime
    [ $((\${now%%.*} - \${started%%.*})) -ge $1 ] && { read -r server </run/server.pid; kill -KILL $server 2>/dev/null; }
    pause
  done
  read -r status </run/server.status
  [ $status = 0 ] || { cat /run/server.log; echo "the server ended with $status"; }
  return $status
}
`,
  'test-server': `#!/bin/sh
. test-sides
start_server "$1"
`,
  'test-server-end': `#!/bin/sh
. test-sides
end_server \${1:-60}
`,
  pair: `#!/bin/sh
. test-sides
start_server "$1" || exit 1
(eval "exec $2")
client=$?
if [ $client = 0 ]; then end_server 60; else end_server 2; fi || exit 1
exit $client
`,
};

/**
 * Runs an interactive shell on the console until its user ends it; sent as a command. Rows and columns are those of the
 * user's terminal. The agent runs commands as leaders of sessions, so opening the console makes it the shell's terminal.
 */
export const shellCommand = (rows: number, columns: number): string =>
  `cd /root; exec </dev/${consoleDevice} >/dev/${consoleDevice} 2>&1; stty rows ${rows} cols ${columns}; exec sh -l`;
