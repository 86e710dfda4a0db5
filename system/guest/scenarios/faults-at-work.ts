/**
 * Faults that hit the drivers and programs while they work: what Linux makes of each, and that everything works again
 * afterwards, by itself or after what an administrator would do.
 *
 * Faults of the device need a trigger that a test can pull when it wants: here it is a shared receive queue, which no
 * program but ours makes. The trigger's n-th pull is SW2HW_SRQ's n-th completion.
 */
import type { FaultPlan } from '../../faults/index.ts';
import { loadWithoutWarning, pingPong, rescan, unloadAnyhow } from './driver.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

const faults: FaultPlan = [
  // The third RTR2RTS_QP is the first of a program: two are those of the special QPs.
  { command: 'RTR2RTS_QP', nth: 3, status: 'BAD_QP_STATE' },
  { read: 'payloadRead', nth: 1500, answer: 'unsupportedRequest' },
  { read: 'payloadRead', nth: 5000, answer: 'poisoned' },
  { read: 'payloadRead', nth: 9000, answer: 'lost' },
  { interrupt: 'late', vector: 1, nth: '10-20', delay: '20ms' },
  { port: 'down', after: 'SW2HW_SRQ', nth: 1, delay: '100ms', for: '1s' },
  { catastrophic: 0xdead, after: 'SW2HW_SRQ', nth: 2, delay: '10us' },
  { device: 'gone', after: 'SW2HW_SRQ', nth: 3, delay: '10us', for: '12s' },
];

/** Makes a shared receive queue, which sets off the next fault of the device. */
const pullTrigger = 'timeout 0.5 ibv_srq_pingpong >/dev/null 2>&1; true';

/** A test that fails, and says why, and works when it is run again. */
const failingOnce = (title: string, command: string, said: RegExp): Step => ({
  title,
  async run(stage) {
    const output = await stage.checkFails(`pair '${command}' '${command} localhost'`);
    const found = output.match(said)?.[0];
    if (found === undefined) throw new ScenarioFailure(`${command} did not say ${said}:\n${output}`);
    await pingPong(stage);
    return found;
  },
});

/** Waits until the kernel has said something. @returns all it said since the mark */
async function waitFor(stage: Stage, mark: number, said: RegExp, seconds: number): Promise<string> {
  for (const endMs = performance.now() + 1000 * seconds; ; ) {
    const text = await stage.messagesSince(mark);
    if (said.test(text)) return text;
    if (performance.now() > endMs) throw new ScenarioFailure(`the kernel did not say ${said}:\n${text}`);
    await stage.check('sleep 0.3');
  }
}

const steps: readonly Step[] = [
  failingOnce(
    'a command that fails is its program’s failure alone',
    'ibv_rc_pingpong -n 50',
    /Failed to modify QP to RTS/,
  ),
  failingOnce(
    'a read of data answered by Unsupported Request ends in an error completion',
    'ib_write_bw -n 100',
    /Failed status \d+/,
  ),
  failingOnce(
    'a read of data that comes back poisoned ends in an error completion',
    'ib_write_bw -n 100',
    /Failed status \d+/,
  ),
  failingOnce(
    'a read of data that is never answered ends in an error completion',
    'ib_write_bw -n 200',
    /Failed status \d+/,
  ),
  {
    title: 'interrupts that come late cost time, and nothing else',
    run: (stage) => pingPong(stage, '-e').then(() => undefined),
  },
  {
    title: 'a port that goes down and up is told of by two events',
    async run(stage) {
      await stage.check('ibv_asyncwatch >/run/events 2>&1 & sleep 0.5');
      await stage.check(pullTrigger);
      await stage.check('until grep -q PORT_ACTIVE /run/events; do sleep 0.1; done; killall ibv_asyncwatch');
      const events = (await stage.check('grep -o "IBV_EVENT.*" /run/events')).trim().split('\n');
      if (!events[0]?.startsWith('IBV_EVENT_PORT_ERR')) throw new ScenarioFailure(events.join('; '));
      await pingPong(stage);
      return events.join('; ');
    },
  },
  {
    title:
      'a fatal error of the firmware: the driver resets the device and goes on, without being loaded again',
    async run(stage) {
      const mark = await stage.markMessages();
      await stage.check('ibv_asyncwatch >/run/events 2>&1 & sleep 0.5');
      await stage.check(pullTrigger);
      const text = await waitFor(stage, mark, /mlx4_restart_one was ended, ret=0/, 60);
      await stage.check('grep DEVICE_FATAL /run/events; killall ibv_asyncwatch');
      if (!/buf\[00\]: 0000dead/.test(text))
        throw new ScenarioFailure(`the error buffer was not read:\n${text}`);
      await stage.session.load();
      await pingPong(stage);
      return text.match(/device was reset successfully/)?.[0];
    },
  },
  {
    title:
      'a device that disappears: the driver gives up on it, the guest lives, and finds it when it is back',
    async run(stage) {
      const mark = await stage.markMessages();
      await stage.check(pullTrigger);
      await waitFor(stage, mark, /device is going to be reset/, 60);
      await stage.check('sleep 12');
      await unloadAnyhow(stage);
      await rescan(stage);
      await loadWithoutWarning(stage);
      await pingPong(stage);
      return undefined;
    },
  },
];

export const faultsAtWork: Scenario = {
  name: 'faults-work',
  title: 'faults while drivers and programs work',
  hcas: 1,
  isCabled: false,
  guests: 1,
  faults,
  isLoaded: true,
  steps,
};
