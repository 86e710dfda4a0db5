/**
 * Pictures of a program's run. The program runs again with everything recorded: around an operation that it posts,
 * whose time an earlier run finds, or around an instant.
 */
import type { MachinePicture, OperationName, OperationPicture, ProgramOrder } from '../protocol.ts';
import type { ProgramWorker } from './program-worker.ts';

/** Simulated time covered by one call of the worker. */
const turnPs = 200_000_000;
/** The last effects of an operation arrive after its completion. */
const afterPs = 5_000_000;

/**
 * @param isWanted whether the reader still waits for the picture
 * @returns undefined if not wanted any more
 * @throws if the program cannot run, or the operation never ends
 */
export async function programPicture(
  worker: ProgramWorker,
  order: ProgramOrder,
  { node, ordinal }: OperationName,
  isWanted: () => boolean,
): Promise<OperationPicture | undefined> {
  const [wrong] = await worker.load(order);
  if (wrong !== undefined) throw new Error(wrong.text);
  for (;;) {
    const { hasEnded } = await worker.runFor(turnPs);
    const operations = await worker.operations();
    if (!isWanted()) return undefined;
    const found = operations.find((each) => each.node === node && each.ordinal === ordinal);
    if (found?.latencyPs !== undefined) {
      const { postedPs: fromPs, latencyPs } = found;
      const watched = { node, ordinal, fromPs, toPs: fromPs + latencyPs };
      const isRecorded = await recorded(worker, { ...order, watched }, watched.toPs + afterPs, isWanted);
      return isRecorded ? worker.picture() : undefined;
    }
    if (!hasEnded) continue;
    const count = operations.filter((each) => each.node === node).length;
    throw new Error(
      found === undefined
        ? `Host ${node} posts ${count} operations, counted from 0: operation ${ordinal} does not exist.`
        : `Operation ${ordinal} of host ${node} has not ended when the program ends.`,
    );
  }
}

/**
 * @param isWanted whether the reader still waits for the picture
 * @returns undefined if not wanted any more
 */
export async function momentPicture(
  worker: ProgramWorker,
  order: ProgramOrder,
  atPs: number,
  isWanted: () => boolean,
): Promise<MachinePicture | undefined> {
  const isRecorded = await recorded(worker, { ...order, watchedPs: atPs }, atPs + afterPs, isWanted);
  return isRecorded ? worker.moment() : undefined;
}

/**
 * Runs a program until an instant.
 * @returns whether the picture is still wanted
 */
async function recorded(
  worker: ProgramWorker,
  order: ProgramOrder,
  untilPs: number,
  isWanted: () => boolean,
): Promise<boolean> {
  await worker.load(order);
  for (let ranPs = 0, isOver = false; !isOver; ranPs += turnPs) {
    const { hasEnded } = await worker.runFor(Math.min(turnPs, untilPs - ranPs));
    if (!isWanted()) return false;
    isOver = hasEnded || ranPs + turnPs >= untilPs;
  }
  return isWanted();
}
