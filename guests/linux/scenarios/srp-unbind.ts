/**
 * The driver is unbound while stock `ib_srp` is logged in. Its workers drain a queue pair in the error state: `ib_drain_rq`
 * posts a receive, which has no doorbell, and waits without limit for the flush (IBTA vol 1, 10.3.1). A device that does not
 * notice the receive blocks the worker and every later unbind.
 */
import { bind, unbind } from './driver.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';
import { loginBySrp, srpTargetNames, useSrpDisk } from './storage.ts';

const rounds = 3;
/** Limit in seconds for a blocked kernel task. An unbind takes 2 s here; an unflushed drain never returns. */
const blockedSeconds = 20;
const unbindTimeoutSeconds = 90;

const isPortActive = '[ "$(cat /sys/class/infiniband/mlx4_0/ports/1/state)" = "4: ACTIVE" ]';
const untilActive = `for t in $(seq 150); do ${isPortActive} && exit 0; sleep 0.2; done; exit 1`;
const hangs = /blocked for more than|drain|BUG:|Oops|WARNING:/;

/** The kernels have reported neither a blocked task nor another warning. @throws ScenarioFailure */
async function expectNoHang(stage: Stage): Promise<void> {
  for (const guest of [0, 1]) {
    const said = (await stage.check('dmesg', { guest })).split('\n').filter((line) => hangs.test(line));
    if (said.length > 0) throw new ScenarioFailure(`the kernel of guest ${guest} said:\n${said.join('\n')}`);
    const stuck = await stage.check(
      'grep -l "^State:.D" /proc/[0-9]*/status 2>/dev/null | while read f; do S=$(dirname $f)/stack; grep -q drain $S && cat $S; done; true',
      { guest },
    );
    if (stuck.trim() !== '') throw new ScenarioFailure(`a task of guest ${guest} drains:\n${stuck}`);
  }
}

/** Runs a command that removes the driver. @returns seconds by the guest's clock */
async function takeAway(stage: Stage, command: string, guest = 0): Promise<number> {
  const timed = `read a b </proc/uptime; ${command}; read c d </proc/uptime; echo; echo $a $c`;
  const output = await stage.check(timed, { guest, timeoutSeconds: unbindTimeoutSeconds });
  const [from = 0, to = 0] = output.trim().split('\n').at(-1)!.split(' ').map(Number);
  return to - from;
}

const secondsText = (seconds: readonly number[]): string =>
  seconds.map((one) => `${one.toFixed(1)} s`).join(', ');

const steps: readonly Step[] = [
  {
    title: 'SRP: login, and 4 MiB to the disk of the other guest and back',
    async run(stage) {
      for (const guest of [0, 1])
        await stage.check(`echo ${blockedSeconds} >/proc/sys/kernel/hung_task_timeout_secs`, { guest });
      await loginBySrp(stage);
      return undefined;
    },
  },
  {
    title: `mlx4_core is unbound ${rounds} times from a session of SRP, which is drained, and bound again`,
    async run(stage) {
      const taken: number[] = [];
      for (let round = 0; round < rounds; round++) {
        taken.push(await takeAway(stage, unbind(stage)));
        await stage.check(`${bind(stage)}; ${untilActive}`);
        await useSrpDisk(stage, await srpTargetNames(stage));
      }
      await expectNoHang(stage);
      return secondsText(taken);
    },
  },
  {
    title:
      'the target’s driver is unbound, the initiator’s queue pair ends in error and is drained long after it',
    async run(stage) {
      const target = await takeAway(stage, unbind(stage), 1);
      // The initiator fails its command, and reconnects in vain (fast_io_fail_tmo, reconnect_delay): its posts are seconds
      // later than ERR.
      await stage.check('dd if=/dev/sda of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null & sleep 15');
      await expectNoHang(stage);
      const initiator = await takeAway(stage, unbind(stage));
      return secondsText([target, initiator]);
    },
  },
  {
    title: 'both drivers are unloaded, and no worker is blocked',
    async run(stage) {
      for (const guest of [0, 1]) await takeAway(stage, 'rmmod mlx4_ib mlx4_core', guest);
      await stage.check(`sleep ${blockedSeconds}`);
      await expectNoHang(stage);
      return undefined;
    },
  },
];

export const srpUnbind: Scenario = {
  name: 'srp-unbind',
  title: 'the driver is unbound from sessions of stock ib_srp',
  hcas: 2,
  isCabled: true,
  guests: 2,
  faults: [],
  isLoaded: true,
  steps,
};
