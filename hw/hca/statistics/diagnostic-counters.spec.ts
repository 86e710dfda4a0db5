/** Counters of DIAG_RPRT: only the event after which a counter is named increments it (IBTA vol 1, 9.7.5, 9.7.6). */
import { describe, expect, it } from 'vitest';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import type { PacketEffect, PacketSelection } from '../../../wire/index.ts';
import { scene } from '../testing/scenario.ts';

/**
 * Returns the nonzero counters of both sides, after this many SENDs of 100 bytes with a fault on the packets of side a
 * or b.
 */
async function counted(options: {
  readonly sends?: number;
  readonly receives?: number;
  readonly fault?: { readonly from: 'a' | 'b' } & PacketSelection;
  readonly key?: number;
}) {
  const { sends = 3, receives = sends, fault, key } = options;
  // Local ACK timeout code 2: 16 us.
  const { bench, a, b, local, remote, target } = await scene({ ackTimeout: 2 });
  const lost: PacketEffect = { kind: 'lost' };
  if (fault !== undefined) bench[fault.from].wire.faults.addRule(lost, fault, { fired: () => {} });
  for (let index = 0; index < receives; index++) b.receive([remote.part(0, 200)]);
  const segments = [local.part(0, 100)];
  for (let index = 0; index < sends; index++)
    if (key === undefined) a.post({ opcode: WqeOpcode.SEND, segments });
    else a.post({ opcode: WqeOpcode.RDMA_WRITE, segments, remote: { ...target, key } });
  a.ring();
  await bench.run(600);
  return bench.nodes.map(({ dataPath }) =>
    Object.fromEntries(Object.entries(dataPath.parts.diagnostics.counts).filter(([, count]) => count > 0)),
  );
}

describe('counters of DIAG_RPRT', () => {
  it('stay where they are while nothing goes wrong', async () => {
    expect(await counted({})).toEqual([{}, {}]);
  });

  it('IBTA 9.7.5.2: count a sequence error at both ends when a request is lost', async () => {
    const psn = { first: 1, last: 1, isRelative: true };
    expect(await counted({ fault: { from: 'a', psns: psn, shots: 1 } })).toEqual([
      { sqOutOfSequence: 1 },
      { rqOutOfSequence: 1 },
    ]);
  });

  it('IBTA 9.7.6.1.3: count a time-out, and the duplicate that follows, when an acknowledgement is lost', async () => {
    expect(await counted({ sends: 1, fault: { from: 'b', shots: 1 } })).toEqual([
      { sqTimeout: 1 },
      { rqDuplicate: 1 },
    ]);
  });

  it('IBTA 9.7.6.1.3: count retries that are used up, and what is flushed then', async () => {
    const [requester, responder] = await counted({ fault: { from: 'a' } });
    // Retry count 7: eight time-outs.
    expect(requester).toEqual({ sqTimeout: 8, sqTransportRetriesExceeded: 1, sqFlushed: 2 });
    expect(responder).toEqual({});
  });

  it('IBTA 9.7.5.2.8: count RNR NAKs at both ends', async () => {
    const [requester, responder] = await counted({ sends: 2, receives: 1 });
    expect(requester!['sqRnr']).toBeGreaterThan(0);
    expect(responder).toEqual({ rqRnr: requester!['sqRnr'] });
  });

  it('IBTA 9.7.5.2: count a refused key as a remote access error at both ends', async () => {
    expect(await counted({ sends: 2, receives: 0, key: 0xf_ff00 })).toEqual([
      { sqRemoteAccess: 1, sqFlushed: 1 },
      { rqRemoteAccess: 1 },
    ]);
  });

  it('are zero again after a reset', async () => {
    const { bench, a, local, target } = await scene();
    a.post({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, 8)], remote: { ...target, key: 1 } });
    a.ring();
    await bench.run(50);
    expect(bench.a.dataPath.parts.diagnostics.counts.sqRemoteAccess).toBe(1);
    bench.a.act(() => bench.a.dataPath.reset());
    await bench.run(5);
    expect(bench.a.dataPath.parts.diagnostics.counts.sqRemoteAccess).toBe(0);
  });
});
