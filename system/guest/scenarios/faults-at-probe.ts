/**
 * Faults that hit the drivers while they load. Each is told apart by what the kernel says, and after each the drivers
 * must load again, as they would on hardware.
 *
 * Faults begin and end by what the driver does, because no test can say at which simulated time a guest gets where. The
 * trigger of one is the end of the attempt before it.
 */
import type { FaultPlan } from '../../faults/index.ts';
import { loadInVain, loadWithoutWarning, pingPong, rescan, unloadAnyhow } from './driver.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

/** Long enough for an attempt of a busy guest, short enough to wait for. */
const ownedSeconds = 4;

/** Longer than the two seconds for which the driver waits. */
const stuckSeconds = 5;

const faults: FaultPlan = [
  // The first attempt gets as far as QUERY_DEV_CAP; with its failure the owner register turns to taken for a while.
  { command: 'QUERY_DEV_CAP', nth: 1, status: 'INTERNAL_ERR' },
  { owner: 'taken', after: 'QUERY_DEV_CAP', nth: 1, for: `${ownedSeconds}s` },
  // Then the second of the event queues cannot be had.
  { command: 'SW2HW_EQ', nth: 2, status: 'BAD_RES_STATE' },
  // Then the drivers load; when they are unloaded somebody else takes the semaphore for a while.
  { semaphore: 'held', after: 'CLOSE_HCA', nth: 2, for: '3s' },
  // And after that the device is late to come back from its reset.
  // Of the resets so far, this is the fifth: an attempt that finds the owner register taken makes none.
  { reset: 'stuck', nth: 5, for: `${stuckSeconds}s` },
];

/** Loading fails, after a while, and the kernel says so. */
const failing = (title: string, said: RegExp, waitSeconds = 0): Step => ({
  title,
  async run(stage) {
    await stage.check(`sleep ${waitSeconds}`);
    const text = await loadInVain(stage);
    const found = text.match(said)?.[0];
    if (found === undefined) throw new ScenarioFailure(`the kernel did not say ${said}:\n${text}`);
    return found;
  },
});

/** Loads again until it works, as somebody would who waits for another driver to let go. */
async function loadUntilItWorks(stage: Stage): Promise<void> {
  await stage.check(
    'tries=0; until modprobe mlx4_core && sleep 0.2 && ls /sys/class/infiniband/mlx4_0 >/dev/null 2>&1; do ' +
      'rmmod mlx4_ib mlx4_core 2>/dev/null; tries=$((tries + 1)); [ $tries = 60 ] && exit 1; sleep 0.5; done',
  );
  await stage.session.load();
}

const steps: readonly Step[] = [
  failing('a command that fails ends the probe', /QUERY_DEV_CAP command failed, aborting/),
  failing('a device that another driver owns is left alone', /Multiple PFs not yet supported/),
  failing('an event queue that cannot be had ends the probe', /SW2HW_EQ failed/, ownedSeconds),
  {
    title: 'after all of these the drivers load, and data moves',
    async run(stage) {
      await loadUntilItWorks(stage);
      await pingPong(stage);
      await unloadAnyhow(stage);
      return undefined;
    },
  },
  {
    title: 'a semaphore held by somebody else is waited for',
    async run(stage) {
      const startMs = performance.now();
      await loadWithoutWarning(stage);
      await unloadAnyhow(stage);
      return `${((performance.now() - startMs) / 1000).toFixed(1)} s`;
    },
  },
  failing(
    'a device that does not come back from reset ends the probe',
    /PCI device did not come back after reset/,
  ),
  {
    title: 'once it is back and was found anew on the bus, the drivers load, and data moves',
    async run(stage) {
      // The driver could not restore what it had saved of the configuration, so loading again is not enough.
      await stage.check(`sleep ${stuckSeconds}`);
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
