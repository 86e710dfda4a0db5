/**
 * A program spins on a byte somewhere in a WRITE of several pages: when that byte has arrived, so have all before it, and the program sees it at
 * the same instant with any observer attached.
 *
 *     asker: WRITE ─► … page │ page … ─► answerer spins on one byte, reads all up to it ─► next
 */
import type { Draft, Draws, Stage } from './language/index.ts';
import { connect, filled, scene, times, WRITE } from './language/index.ts';

interface Args {
  /** Messages, each with the byte on which the receiver spins. */
  readonly messages: readonly {
    readonly offset: number;
    readonly lengthBytes: number;
    readonly spunOn: number;
  }[];
}

const areaBytes = 32 * 1024;
const spinCycles = 30;
const byteOf = (message: number): number => 1 + (message % 250);

function draw(random: Draws): Draft<Args> {
  const messages = times(1 + random.below(8), () => {
    const offset = random.chance(0.6) ? 256 * random.below(16) : random.below(4096);
    const lengthBytes = 1 + random.below(areaBytes - offset);
    return { offset, lengthBytes, spunOn: random.chance(0.4) ? lengthBytes - 1 : random.below(lengthBytes) };
  });
  return {
    args: { messages },
    set: random.maybe(0.5, () => ({ 'pcie.rootComplex.writeLatencyPs': random.below(170_000) })),
    hasDrawnHardware: random.chance(0.3),
    again: { partition: 'single', shuffleSeed: undefined, isUnwatched: true },
  };
}

async function asker(stage: Stage<Args>): Promise<void> {
  const side = await connect(stage, { areaBytes });
  for (const [message, { offset, lengthBytes }] of stage.args.messages.entries()) {
    side.fill(filled(areaBytes, byteOf(message)));
    await stage.meet('spins');
    side.post(message, WRITE, { offset, lengthBytes });
    await side.expectWell(1);
    await stage.meet('seen');
  }
}

/** @returns when each byte was seen, for the comparison with the second time */
async function answerer(stage: Stage<Args>): Promise<number[]> {
  const { cpu, memory } = stage;
  const side = await connect(stage, { areaBytes });
  const seenPs: number[] = [];
  for (const [message, { offset, lengthBytes, spunOn }] of stage.args.messages.entries()) {
    side.fill(new Uint8Array(areaBytes));
    await stage.meet('spins');
    const address = side.area.address + offset + spunOn;
    const isThere = (): boolean => memory.read(address, 1)[0] === byteOf(message);
    await cpu.spin(memory.process.space.translate(address), spinCycles, isThere);
    seenPs.push(stage.nowPs);
    const before = side.bytes(offset, lengthBytes).subarray(0, spunOn);
    stage.expectBytes(`message ${message} before byte ${spunOn}`, before, filled(spunOn, byteOf(message)));
    await stage.meet('seen');
  }
  return seenPs;
}

export const polledBytes = scene({
  about: 'a program spins on a byte of a message of several pages, with and without observers',
  draw,
  programs: [asker, answerer],
});
