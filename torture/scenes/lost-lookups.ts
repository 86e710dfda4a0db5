/**
 * Reads of translations are lost, for QPs that are destroyed meanwhile, while other QPs use the same region after its tables have changed: a
 * failure of one does not affect another. A request whose own read is lost fails as well, but not before the device's time-out (PCI
 * Express 3.1, 2.8).
 *
 *     round:  WRITE of a QP ─► destroyed ─► time-out of its read ─► a region comes ─► WRITE of the QP that stays
 */
import type { ArgsOf, Draft, Draws, Stage } from './language/index.ts';
import { connect, present, psPerUs, scene, times, WRITE } from './language/index.ts';

/** Least time that the device waits for an answer. */
const timeoutUs = 50;
/** Longer than the device waits for a read, however many it abandons one after the other. */
const pauseUs = 4 * timeoutUs;

function draw(random: Draws) {
  const rounds = 3 + random.below(6);
  // Times from the post to the destruction of each temporary QP.
  const delaysNs = times(rounds, () => 1000 + random.below(6000));
  const lengthBytes = 1 + random.below(4096);
  // The first read is the probe's; of each round's four the first is for the payload of the temporary QP.
  const nth = 2 + 4 * random.below(rounds) + (random.chance(0.5) ? 0 : random.below(4));
  const set = { 'pcie.function.completionTimeoutDefaultUs': timeoutUs };
  const faults = [{ read: 'translation', nth, answer: 'lost', node: 0 } as const];
  return { args: { delaysNs, lengthBytes }, set, faults, climate: 'flawed' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

const optionsOf = ({ lengthBytes, delaysNs }: Args) => ({
  ...{ areaBytes: lengthBytes, qpCount: delaysNs.length + 1 },
  attributes: { timeoutCode: 10, retryCount: 1 },
});

/** The last QP stays until one of its requests fails. */
async function asker(stage: Stage<Args>): Promise<void> {
  const { delaysNs, lengthBytes } = stage.args;
  const side = await connect(stage, optionsOf(stage.args));
  const { device, qps } = side;
  for (const [round, delayNs] of delaysNs.entries()) {
    const before = await device.buffer(1);
    side.post(0, WRITE, { qp: round, lengthBytes });
    await stage.sleepNs(delayNs);
    await device.destroyQp(qps[round]!);
    await stage.sleepUs(pauseUs);
    const after = await device.buffer(1);
    const postedPs = stage.nowPs;
    side.post(0, WRITE, { qp: delaysNs.length, lengthBytes });
    const [end] = await side.watch(1, { napPs: psPerUs, patiencePs: 20_000 * psPerUs });
    await device.deregister(before.region);
    await device.deregister(after.region);
    if (end?.status === 'SUCCESS') continue;
    // A request that is flushed, or that waited for the time-out, met the lost read itself.
    const tookUs = end === undefined ? timeoutUs : (end.atPs - postedPs) / psPerUs;
    if (tookUs < timeoutUs && end?.status !== 'WR_FLUSH_ERR')
      stage.accuse(`round ${round}: ${end?.status} after ${tookUs} us, sooner than any read is given up`);
    break;
  }
  await stage.meet('over');
}

export const lostLookups = scene({
  about:
    'reads of translations are lost for QPs that are destroyed, and another QP uses the region afterwards',
  cable: 'infiniband',
  draw,
  programs: [asker, present(optionsOf)],
});
