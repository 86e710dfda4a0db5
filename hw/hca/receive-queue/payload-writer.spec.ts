import { describe, expect, it } from 'vitest';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { scene } from '../testing/scenario.ts';

const BYTES = 4096;
const STEP_US = 0.05;

/** A WRITE from a to b, run up to the first instant at which b has given the last packet back and writes are under way. */
async function untilGivenBack() {
  const found = await scene();
  const { a, bench, local, target } = found;
  a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, BYTES)], remote: target });
  const { references, wire } = bench.b;
  const isGivenBack = (): boolean =>
    references.referenceCount > references.releasedCount && bench.b.dataPath.blocks.writer.requestedCount > 1;
  for (let steps = 0; !(isGivenBack() && wire.receiveBufferedBytes === 0); steps++) {
    expect(steps).toBeLessThan(2000);
    await bench.run(STEP_US);
  }
  return found;
}

describe('received payload on its way to host memory', () => {
  it('keeps its room in the ring when its credits have gone back, until it is written', async () => {
    const { bench, aCq, local, remote, checkBystanders } = await untilGivenBack();
    const { references, wireReader } = bench.b;
    expect(wireReader.takenBytes).toBeGreaterThan(0);
    await bench.until(() => aCq.drain().length > 0, 100);
    expect(references.releasedCount).toBe(references.referenceCount);
    expect(remote.read().slice(0, BYTES)).toEqual(local.read().slice(0, BYTES));
    await checkBystanders();
  });

  it('keeps its room when a reset comes between, and is written all the same', async () => {
    const { a, bench, local, remote, target } = await scene();
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, BYTES)], remote: target });
    const { b } = bench;
    const { references, wire, wireReader } = b;
    for (let steps = 0; references.referenceCount < 3; steps++) {
      expect(steps).toBeLessThan(2000);
      await bench.run(STEP_US);
    }
    let atReset = { referenced: 0, settled: 0, bufferedBytes: -1, takenBytes: 0 };
    b.act(() => {
      b.writes.reset(b.domain.cycle);
      b.dataPath.control.resetAll();
      const { referenceCount: referenced, releasedCount: settled } = references;
      atReset = {
        referenced,
        settled,
        bufferedBytes: wire.receiveBufferedBytes,
        takenBytes: wireReader.takenBytes,
      };
    });
    await bench.run(STEP_US);
    expect(atReset.referenced).toBeGreaterThan(atReset.settled);
    expect(atReset.bufferedBytes).toBe(0);
    expect(atReset.takenBytes).toBeGreaterThan(0);
    await bench.run(5);
    expect(references.releasedCount).toBe(atReset.referenced);
    // The writes have at most 256 bytes each; the first is shorter.
    const bytes = (atReset.referenced - 1) * 256;
    expect(remote.read().slice(0, bytes)).toEqual(local.read().slice(0, bytes));
  });
});
