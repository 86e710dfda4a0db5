/**
 * Faults that hit the drivers while they load. Each is recognised by a kernel message, and after each the drivers must load
 * again, as on hardware.
 *
 * Faults begin and end with actions of the driver, because no test can predict a guest's progress in simulated time. The
 * trigger of each is the end of the previous attempt.
 */
import type { FaultPlan } from '../../../machine/faults/index.ts';
import {
  bind,
  expectNoWarning,
  loadWithoutSuccess,
  pingPong,
  rescan,
  unbind,
  unloadAnyhow,
  waitUntilBack,
} from './driver.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

const faults: FaultPlan = [
  // The first attempt proceeds to QUERY_DEV_CAP; when that fails, the owner register reads as taken for a while.
  { command: 'QUERY_DEV_CAP', nth: 1, status: 'INTERNAL_ERR' },
  { owner: 'taken', after: 'QUERY_DEV_CAP', nth: 1, for: '8s' },
  // Then creating the second event queue fails.
  { command: 'SW2HW_EQ', nth: 2, status: 'BAD_RES_STATE' },
  // Then the drivers load; when they release the device, another owner takes the semaphore for a while.
  { semaphore: 'held', after: 'CLOSE_HCA', nth: 2, for: '3s' },
  // Then the device returns late from its reset: after more than the two seconds for which the driver waits. It is the fifth
  // reset so far: an attempt that finds the owner register taken makes none.
  { reset: 'stuck', nth: 5, for: '5s' },
];

/** An attempt that fails with a kernel message. */
const failing = (title: string, said: RegExp, attempt: (stage: Stage) => Promise<string>): Step => ({
  title,
  async run(stage) {
    const text = await attempt(stage);
    const found = text.match(said)?.[0];
    if (found === undefined) throw new ScenarioFailure(`the kernel did not say ${said}:\n${text}`);
    return found;
  },
});

const anotherOwns = /Multiple PFs not yet supported/;

/** Tries to bind the device to the loaded driver. @returns the kernel's messages */
async function bindWithoutSuccess(stage: Stage): Promise<string> {
  const mark = await stage.markMessages();
  await stage.check(`! ${bind(stage)}`);
  return await stage.messagesSince(mark);
}

/** Repeats {@link bindWithoutSuccess} until no other driver owns the device. */
async function bindWithoutSuccessOnceFree(stage: Stage): Promise<string> {
  for (;;) {
    const text = await bindWithoutSuccess(stage);
    if (!anotherOwns.test(text)) return text;
    await stage.check('sleep 0.5');
  }
}

/** Number of reads of the semaphore. */
async function semaphoreReads(stage: Stage): Promise<number> {
  const { nodes } = await stage.session.machine.report();
  return nodes[0]!.accesses.registers['semaphore']?.reads ?? 0;
}

const steps: readonly Step[] = [
  failing(
    'a command that fails ends the probe',
    /QUERY_DEV_CAP command failed, aborting/,
    loadWithoutSuccess,
  ),
  failing('a device that another driver owns is left alone', anotherOwns, bindWithoutSuccess),
  failing('an event queue that cannot be had ends the probe', /SW2HW_EQ failed/, bindWithoutSuccessOnceFree),
  {
    title: 'after all of these the drivers load, and data moves',
    async run(stage) {
      await stage.check(bind(stage));
      await stage.session.load();
      await pingPong(stage);
      return undefined;
    },
  },
  {
    title: 'a semaphore held by another owner is waited for',
    async run(stage) {
      const mark = await stage.markMessages();
      const before = await semaphoreReads(stage);
      await stage.check(`${unbind(stage)} && ${bind(stage)}`);
      const reads = (await semaphoreReads(stage)) - before;
      if (reads < 2) throw new ScenarioFailure(`the semaphore was read ${reads} times`);
      await expectNoWarning(stage, mark);
      await stage.session.load();
      await pingPong(stage);
      await unloadAnyhow(stage);
      return `read ${reads} times`;
    },
  },
  failing(
    'a device that does not come back from reset ends the probe',
    /PCI device did not come back after reset/,
    async (stage) => {
      const text = await loadWithoutSuccess(stage);
      await unloadAnyhow(stage);
      return text;
    },
  ),
  {
    title: 'once it is back and was found anew on the bus, the drivers load, and data moves',
    async run(stage) {
      await waitUntilBack(stage);
      // The driver could not restore the saved configuration, so loading again is not enough.
      await rescan(stage);
      await stage.session.load();
      await pingPong(stage);
      return undefined;
    },
  },
];

export const faultsAtProbe: Scenario = {
  name: 'faults-probe',
  title: 'faults while the drivers load',
  hcas: 1,
  isCabled: false,
  guests: 1,
  faults,
  isLoaded: false,
  steps,
};
