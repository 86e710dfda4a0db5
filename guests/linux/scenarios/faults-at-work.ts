/**
 * Faults that hit the drivers and programs while they work: Linux' reaction to each, and the recovery afterwards, automatic or
 * by an administrator.
 *
 * Faults of the device need a trigger that a test controls: here it is a shared receive queue, which only our program creates.
 * The n-th trigger is SW2HW_SRQ's n-th completion.
 */
import type { FaultPlan } from '../../../machine/faults/index.ts';
import { differencesOf } from '../guest-report.ts';
import { loadWithoutWarning, pingPong, rescan, unloadAnyhow, waitUntilBack } from './driver.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

/** More messages of vector 1 than the device has sent until the step that injects a spurious one after them. */
const messagesBefore = 400;

const faults: FaultPlan = [
  // The third RTR2RTS_QP is the first of a program: two are those of the special QPs.
  { command: 'RTR2RTS_QP', nth: 3, status: 'BAD_QP_STATE' },
  { read: 'payloadRead', nth: 1500, answer: 'unsupportedRequest' },
  { read: 'payloadRead', nth: 5000, answer: 'poisoned' },
  { read: 'payloadRead', nth: 9000, answer: 'lost' },
  { interrupt: 'late', vector: 1, nth: '10-20', delay: '20ms' },
  // So late that nothing else happens: a message that finds another pending merges with it.
  { interrupt: 'spurious', vector: 1, nth: messagesBefore, delay: '2s' },
  { port: 'down', after: 'SW2HW_SRQ', nth: 1, delay: '100ms', for: '1s' },
  { catastrophic: 0xdead, after: 'SW2HW_SRQ', nth: 2, delay: '10us' },
  { device: 'gone', after: 'SW2HW_SRQ', nth: 3, delay: '10us', for: '12s' },
];

/** Creates a shared receive queue, which triggers the next fault of the device; the program listens when it has created it. */
const pullTrigger = '(test-server ibv_srq_pingpong; test-server-end 0) >/dev/null 2>&1; true';

/** Writes events of the adapter to a file, from now on. */
const watchEvents =
  'ibv_asyncwatch >/run/events 2>&1 & until grep -q "async event" /run/events; do sleep 0.1; done';

/** A test that fails with a reason, and works when it is repeated. */
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

/** The device's counts for the vector of programs' completion events. */
async function completionVector(stage: Stage): Promise<{ sent: number; delivered: number }> {
  const { interrupts } = (await stage.session.machine.report()).nodes[0]!;
  return interrupts.find(({ vector }) => vector === 1) ?? { sent: 0, delivered: 0 };
}

/** Waits for a kernel message, at most so long on the session's clock. @returns all messages since the mark */
async function waitFor(stage: Stage, mark: number, said: RegExp, seconds: number): Promise<string> {
  const { session } = stage;
  for (const endMs = session.nowMs + 1000 * seconds; ; ) {
    const text = await stage.messagesSince(mark);
    if (said.test(text)) return text;
    if (session.nowMs > endMs) throw new ScenarioFailure(`the kernel did not say ${said}:\n${text}`);
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
    title: 'an interrupt that the device never sent finds nothing to do, and does no harm',
    async run(stage) {
      while ((await completionVector(stage)).sent < messagesBefore) await pingPong(stage, '-e');
      let vector = await completionVector(stage);
      for (; vector.delivered === vector.sent; vector = await completionVector(stage))
        await stage.check('sleep 0.2');
      const [difference] = differencesOf(await stage.session.compareInterrupts());
      if (difference !== undefined) throw new ScenarioFailure(difference);
      await pingPong(stage, '-e');
      return `${vector.delivered} interrupts delivered, ${vector.sent} of them sent by the device`;
    },
  },
  {
    title: 'a port that goes down and up raises two events',
    async run(stage) {
      await stage.check(watchEvents);
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
      await stage.check(watchEvents);
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
      await waitUntilBack(stage);
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
