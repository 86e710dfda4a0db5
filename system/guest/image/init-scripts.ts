/**
 * The shell scripts of the guest: `init`, the first process; the agent through which the emulator runs commands (see
 * ../agent.ts for the other end and the protocol); and `pair`, which runs the two sides of a test.
 *
 * They are written for busybox's ash. Nothing is configured here beyond what every Debian would have mounted and
 * named: modules are loaded, and devices used, by commands that the emulator sends, so that each can be seen to fail.
 */

/** Serial ports as the guest names them: the console, and the agent's line. */
export const consoleDevice = 'ttyS0';
export const agentDevice = 'ttyS1';

export const initScript = `#!/bin/sh
export PATH=/usr/sbin:/usr/bin HOME=/root TERM=linux
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

/** The TCP port at which perftest and the ping-pong programs of libibverbs meet, as /proc/net/tcp writes it. */
const meetingPort = (18515).toString(16).toUpperCase();

/**
 * pair SERVER CLIENT runs both sides of a test in this guest: the server in the background, and the client once the
 * server listens. Prints what the client prints; what the server printed only when something failed.
 */
export const pairScript = `#!/bin/sh
log=/run/pair.$$
listens() { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ':${meetingPort} .* 0A '; }
sh -c "exec $1" >$log 2>&1 &
server=$!
until listens; do
  kill -0 $server 2>/dev/null || { wait $server; status=$?; cat $log; echo "pair: the server ended with $status before the client began"; exit 1; }
  sleep 0.02
done
sh -c "exec $2"
client=$?
wait $server
status=$?
[ $client = 0 ] && [ $status = 0 ] && { rm $log; exit 0; }
cat $log
rm $log
echo "pair: the client ended with $client, the server with $status"
exit 1
`;

/**
 * Runs an interactive shell on the console until its user ends it; sent as a command. Rows and columns are those of the
 * user's terminal.
 */
export const shellCommand = (rows: number, columns: number): string =>
  `stty rows ${rows} cols ${columns} </dev/${consoleDevice}; ` +
  `cd /root; exec setsid -c sh -l </dev/${consoleDevice} >/dev/${consoleDevice} 2>&1`;
