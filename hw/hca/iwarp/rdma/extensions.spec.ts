/** The messages of RFC 7306 between two cards whose byte streams are joined: atomics, and WRITE with immediate data. */
import { describe, expect, it } from 'vitest';
import { CqeSyndrome, ReceiveOpcode } from '../../../../abi/cqe.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { completionsOf, iwarpScene, runJoined } from '../testing/iwarp-bench.ts';

const { ATOMIC_CS, ATOMIC_FA, MASKED_ATOMIC_CS, MASKED_ATOMIC_FA, RDMA_READ, RDMA_WRITE_IMM, SEND_IMM } =
  WqeOpcode;
const ALL = 0xffff_ffff_ffff_ffffn;
/** The operations of `protocol/iwarp/formats.ts` by their numbers (RFC 7306, 4). */
const opcode = { immediate: 8, immediateSolicited: 9, atomicRequest: 10, atomicResponse: 11 };

const extended = { hasExtensions: true };
const littleEndian = (value: bigint): Uint8Array => {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value, true);
  return bytes;
};
const numberOf = (bytes: Uint8Array): bigint =>
  new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true);

/** Region `remote` begins at 3000 in its page: 8 bytes further is a multiple of 8. */
const PLACE = 16;

async function sceneWith(value: bigint, agreement = {}) {
  const scene = await iwarpScene(agreement, extended);
  scene.remote.write(littleEndian(value), PLACE);
  const remote = { address: scene.remote.address + PLACE, key: scene.remote.key };
  return { ...scene, target: remote };
}

describe('RFC 7306, 5: an atomic over iWARP', () => {
  const rows = [
    {
      what: 'adds to 64 bits, with a carry into the upper half',
      request: { opcode: ATOMIC_FA, swapOrAdd: 3n },
      before: 0x1_ffff_ffffn,
      after: 0x2_0000_0002n,
    },
    {
      what: 'adds without a carry beyond a boundary',
      request: { opcode: MASKED_ATOMIC_FA, swapOrAdd: 1n, compare: 0x8000_0000n },
      before: 0xffff_ffffn,
      after: 0n,
    },
    {
      what: 'swaps when the values are equal',
      request: { opcode: ATOMIC_CS, swapOrAdd: 0x1122_3344_5566_7788n, compare: 7n },
      before: 7n,
      after: 0x1122_3344_5566_7788n,
    },
    {
      what: 'leaves another value',
      request: { opcode: ATOMIC_CS, swapOrAdd: 1n, compare: 7n },
      before: 0x1_0000_0007n,
      after: 0x1_0000_0007n,
    },
    {
      what: 'compares and swaps under masks',
      request: {
        opcode: MASKED_ATOMIC_CS,
        swapOrAdd: ALL,
        compare: 0xab00n,
        masks: { swap: 0xf0f0n, compare: 0xff00n },
      },
      before: 0xab12n,
      after: 0xfbf2n,
    },
  ];
  it.each(rows)('$what, and returns the old value', async ({ request, before, after }) => {
    const { bench, a, aCq, local, remote, target } = await sceneWith(before);
    a.send({ ...request, segments: [local.part(8, 8)], remote: target });
    expect(await completionsOf(bench, aCq, 1)).toMatchObject([{ wqeCounter: 0, syndrome: 0, byteCount: 8 }]);
    await runJoined(bench, 5);
    expect(numberOf(local.read(8, 8))).toBe(before);
    expect(numberOf(remote.read(PLACE, 8))).toBe(after);
    const [sent, received] = [bench.a, bench.b].map(({ dataPath }) => dataPath.parts.segmentCounters);
    expect(sent!.sent.segments[opcode.atomicRequest]).toBe(1);
    expect(received!.sent.segments[opcode.atomicResponse]).toBe(1);
  });

  it('scatters the old value over several segments', async () => {
    const { bench, a, aCq, local, target } = await sceneWith(0x0102_0304_0506_0708n);
    const segments = [local.part(100, 3), local.part(200, 5)];
    a.send({ opcode: ATOMIC_FA, swapOrAdd: 0n, segments, remote: target });
    await completionsOf(bench, aCq, 1);
    await runJoined(bench, 5);
    expect([...local.read(100, 3), ...local.read(200, 5)]).toEqual([8, 7, 6, 5, 4, 3, 2, 1]);
  });

  it('RFC 5040, 5.5: keeps its place between READs, in order, whatever ORD is', async () => {
    const { bench, a, aCq, local, target } = await sceneWith(100n, { reads: 2 });
    for (let index = 0; index < 6; index++) {
      const segments = [local.part(8 * index, 8)];
      if (index % 2 === 0) a.send({ opcode: ATOMIC_FA, swapOrAdd: 1n, segments, remote: target });
      else a.send({ opcode: RDMA_READ, segments, remote: target });
    }
    const done = await completionsOf(bench, aCq, 6);
    expect(done.map(({ wqeCounter, syndrome }) => [wqeCounter, syndrome])).toEqual(
      [0, 1, 2, 3, 4, 5].map((counter) => [counter, 0]),
    );
    await runJoined(bench, 5);
    const found = [0, 1, 2, 3, 4, 5].map((index) => numberOf(local.read(8 * index, 8)));
    // Each READ returns what the atomic before it has left.
    expect(found).toEqual([100n, 101n, 101n, 102n, 102n, 103n]);
  });

  it.each([
    { what: 'of an address that is no multiple of 8', wrong: { offset: 4 }, error: '0x0207' },
    { what: 'of an STag that does not exist', wrong: { key: 0x7700 }, error: '0x0100' },
    { what: 'beyond the region', wrong: { offset: 16_384 }, error: '0x0101' },
  ])('RFC 7306, 8.2: $what ends the stream by a Terminate', async ({ wrong, error }) => {
    const { bench, a, aCq, local, target, streams } = await sceneWith(5n);
    const remote = { address: target.address + (wrong.offset ?? 0), key: wrong.key ?? target.key };
    a.send({ opcode: ATOMIC_FA, swapOrAdd: 1n, segments: [local.part(8, 8)], remote });
    expect(await completionsOf(bench, aCq, 1)).toMatchObject([{ syndrome: CqeSyndrome.WR_FLUSH_ERR }]);
    expect(streams.b.log.join()).toContain(`terminate sent ${error}`);
  });

  it('fails where the result may not be written', async () => {
    const { bench, a, aCq, local, target } = await sceneWith(5n);
    const segments = [{ ...local.part(8, 8), key: 0x7700 }];
    a.send({ opcode: ATOMIC_FA, swapOrAdd: 1n, segments, remote: target });
    expect(await completionsOf(bench, aCq, 1)).toMatchObject([{ syndrome: CqeSyndrome.LOCAL_PROT_ERR }]);
  });
});

describe('RFC 7306, 6: a WRITE with immediate data over iWARP', () => {
  // MULPDU 1454 less 14 bytes of header less an FPDU of 18 + 8 bytes, 32 bytes long (RFC 5044, 3).
  it.each([0, 1, 1407, 1408, 1409, 1440, 6000])(
    'of %i bytes places them, then takes a receive and leaves its buffer as it is',
    async (lengthBytes) => {
      const { bench, a, b, aCq, bCq, local, remote } = await iwarpScene({}, extended);
      b.receive([remote.part(9000, 64)]);
      const before = remote.read(9000, 64);
      const segments = lengthBytes === 0 ? [] : [local.part(100, lengthBytes)];
      const target = { address: remote.address + 11, key: remote.key };
      a.send({ opcode: RDMA_WRITE_IMM, segments, remote: target, immediate: 0x1234_5678 });
      expect(await completionsOf(bench, bCq, 1)).toMatchObject([
        {
          ...{ syndrome: 0, opcode: ReceiveOpcode.RDMA_WRITE_IMM },
          ...{ byteCount: lengthBytes, immediate: 0x1234_5678 },
        },
      ]);
      expect(await completionsOf(bench, aCq, 1)).toMatchObject([{ wqeCounter: 0, syndrome: 0 }]);
      expect(remote.read(11, lengthBytes)).toEqual(local.read(100, lengthBytes));
      expect(remote.read(9000, 64)).toEqual(before);
      const { received } = bench.b.dataPath.parts.segmentCounters;
      expect(received.segments[0]).toBe(Math.max(1, Math.ceil(lengthBytes / 1408)));
      expect(received.segments[opcode.immediate]).toBe(1);
    },
  );

  it.each([true, false])('with markers %s, both FPDUs fit into a segment of TCP', async (hasMarkers) => {
    const { bench, a, b, bCq, local, remote, streams } = await iwarpScene({ hasMarkers }, extended);
    b.receive([]);
    const target = { address: remote.address, key: remote.key };
    a.send({ opcode: RDMA_WRITE_IMM, segments: [local.part(0, 6000)], remote: target, immediate: 1 });
    await completionsOf(bench, bCq, 1);
    for (const bytes of streams.a.sent) expect(bytes.length).toBeLessThanOrEqual(1460);
    expect(remote.read(0, 6000)).toEqual(local.read(0, 6000));
  });

  it('RFC 5041, 7.2: without a posted receive ends the stream', async () => {
    const { bench, a, local, remote, streams } = await iwarpScene({}, extended);
    const target = { address: remote.address, key: remote.key };
    a.send({ opcode: RDMA_WRITE_IMM, segments: [local.part(0, 8)], remote: target, immediate: 1 });
    await runJoined(bench, 50);
    expect(streams.b.log.join()).toContain('terminate sent 0x1202');
  });
});

describe('without the capability', () => {
  it.each([
    { what: 'an atomic', request: { opcode: ATOMIC_FA, swapOrAdd: 1n } },
    { what: 'a WRITE with immediate data', request: { opcode: RDMA_WRITE_IMM, immediate: 1 } },
  ])('$what completes with a local QP operation error', async ({ request }) => {
    const { bench, a, aCq, local, remote } = await iwarpScene();
    const target = { address: remote.address, key: remote.key };
    a.send({ ...request, segments: [local.part(8, 8)], remote: target });
    expect(await completionsOf(bench, aCq, 1)).toMatchObject([{ syndrome: CqeSyndrome.LOCAL_QP_OP_ERR }]);
  });

  it('a SEND with immediate data is refused even with it: RFC 7306 has none', async () => {
    const { bench, a, aCq, local } = await iwarpScene({}, extended);
    a.send({ opcode: SEND_IMM, segments: [local.part(8, 8)], immediate: 1 });
    expect(await completionsOf(bench, aCq, 1)).toMatchObject([{ syndrome: CqeSyndrome.LOCAL_QP_OP_ERR }]);
  });
});
