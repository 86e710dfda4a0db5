/** Masked atomics at both ends of a connection: comparison, addition and replacement, their checks and repetition. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../../abi/cqe.ts';
import { ServiceType } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { NakCode, nakSyndrome, Opcode } from '../../../../wire/index.ts';
import { type BenchOptions, tightest } from '../../testing/data-path-bench.ts';
import { connectedPair, encodeWqe, psnA, type SendRequest } from '../../testing/data-path-verbs.ts';
import { type Scene, scene, summaryOf, syndromesOf } from '../../testing/scenario.ts';

const { MASKED_ATOMIC_CS, MASKED_ATOMIC_FA } = WqeOpcode;
const ones = 2n ** 64n - 1n;
const sizes: [string, BenchOptions][] = [
  ['', {}],
  [', at the smallest sizes', { hca: tightest }],
];

/** Place of the word in the peer's region, and of the result in ours. */
const WORD = 64;
const RESULT = 128;

const swap = (given: Scene, change: Partial<SendRequest> = {}): SendRequest => ({
  opcode: MASKED_ATOMIC_CS,
  segments: [given.local.part(RESULT, 8)],
  remote: { address: given.remote.address + WORD, key: given.remote.key },
  swapOrAdd: 0n,
  compare: 0n,
  masks: { swap: ones, compare: ones },
  ...change,
});
const add = (given: Scene, change: Partial<SendRequest> = {}): SendRequest => ({
  opcode: MASKED_ATOMIC_FA,
  segments: [given.local.part(RESULT, 8)],
  remote: { address: given.remote.address + WORD, key: given.remote.key },
  swapOrAdd: 0n,
  compare: 0n,
  ...change,
});

/** Words of memory are in the host's byte order. */
function put(given: Scene, value: bigint): void {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value, true);
  given.remote.write(bytes, WORD);
}
const readFrom = (region: Scene['local'], offset: number): bigint => {
  const bytes = region.read(offset, 8).slice();
  return new DataView(bytes.buffer).getBigUint64(0, true);
};
const held = (given: Scene): bigint => readFrom(given.remote, WORD);
const found = (given: Scene): bigint => readFrom(given.local, RESULT);

/** Executes one request on a word; returns the word's new value, and the value in the response. */
async function executed(given: Scene, value: bigint, request: SendRequest): Promise<[bigint, bigint]> {
  put(given, value);
  given.a.send(request);
  await given.bench.until(() => given.aCq.drain().length > 0, 100);
  return [held(given), found(given)];
}

/** Adds bit by bit, as the published description does: the carry out of a bit with a boundary is lost. */
function sumBitByBit(value: bigint, addend: bigint, boundaries: bigint): bigint {
  let sum = 0n;
  let carry = 0n;
  for (let bit = 0n; bit < 64n; bit++) {
    const at = (of: bigint): bigint => (of >> bit) & 1n;
    const total = at(value) + at(addend) + carry;
    sum |= (total & 1n) << bit;
    carry = at(boundaries) === 1n ? 0n : total >> 1n;
  }
  return sum;
}

const words = fc.bigInt({ min: 0n, max: ones });

describe.each(sizes)('masked atomics%s', (_, options) => {
  it('MLNX_OFED, enhanced atomic operations: add field by field, and bring what was there before', async () => {
    const given = await scene(options);
    await fc.assert(
      fc.asyncProperty(words, words, words, async (value, addend, boundaries) => {
        const outcome = await executed(given, value, add(given, { swapOrAdd: addend, compare: boundaries }));
        expect(outcome).toEqual([sumBitByBit(value, addend, boundaries), value]);
      }),
      { numRuns: 40 },
    );
  });

  it('MLNX_OFED, enhanced atomic operations: swap the bits of one mask where those of another are equal', async () => {
    const given = await scene(options);
    await fc.assert(
      fc.asyncProperty(
        words,
        words,
        words,
        words,
        fc.boolean(),
        async (value, other, compare, mask, isSame) => {
          const compared = isSame ? (value & compare) | (other & (ones ^ compare)) : other;
          const isEqual = ((value ^ compared) & compare) === 0n;
          const request = swap(given, {
            swapOrAdd: other,
            compare: compared,
            masks: { swap: mask, compare },
          });
          const wanted = isEqual ? (value & (ones ^ mask)) | (other & mask) : value;
          expect(await executed(given, value, request)).toEqual([wanted, value]);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('are one request packet and one answer each, in the order in which they were posted', async () => {
    const given = await scene(options);
    put(given, 0x00ff_0000_0000_00ffn);
    given.a.post(add(given, { swapOrAdd: 1n, compare: 0x80n }));
    given.a.post(
      swap(given, {
        segments: [given.local.part(RESULT + 8, 8)],
        swapOrAdd: ones,
        masks: { swap: 0xf0n, compare: 0xffn },
      }),
    );
    given.a.ring();
    const ended = [] as ReturnType<typeof given.aCq.drain>;
    await given.bench.until(() => ended.push(...given.aCq.drain()) >= 2, 100);
    expect(summaryOf(ended)).toEqual(['send 0: 0x0', 'send 1: 0x0']);
    expect(held(given)).toBe(0x00ff_0000_0000_00f0n);
    expect([found(given), readFrom(given.local, RESULT + 8)]).toEqual([
      0x00ff_0000_0000_00ffn,
      0x00ff_0000_0000_0000n,
    ]);
    expect(given.bench.b.port.packets.map(({ opcode, psn }) => [opcode, psn])).toEqual([
      [Opcode.RC_MASKED_FETCH_ADD, psnA(0)],
      [Opcode.RC_MASKED_COMPARE_SWAP, psnA(1)],
    ]);
    const answers = given.bench.a.port.packets.filter(
      ({ opcode }) => opcode === Opcode.RC_ATOMIC_ACKNOWLEDGE,
    );
    expect(answers.map(({ psn }) => psn)).toEqual([psnA(0), psnA(1)]);
  });
});

describe('masked atomics', () => {
  it.each([
    ['swap', MASKED_ATOMIC_CS],
    ['add', MASKED_ATOMIC_FA],
  ])(
    'IBTA 9.7.5.1.4: of kind %s are answered again from the result kept, and not executed again',
    async (_, opcode) => {
      const given = await scene();
      const { bench, a } = given;
      put(given, 5n);
      a.send(
        (opcode === MASKED_ATOMIC_CS ? swap : add)(given, {
          swapOrAdd: 3n,
          compare: opcode === MASKED_ATOMIC_CS ? 5n : 0n,
        }),
      );
      await bench.run(20);
      const after = held(given);
      expect(after).toBe(opcode === MASKED_ATOMIC_CS ? 3n : 8n);
      const repeated = {
        opcode: opcode === MASKED_ATOMIC_CS ? Opcode.RC_MASKED_COMPARE_SWAP : Opcode.RC_MASKED_FETCH_ADD,
        qpn: given.b.qpn,
        psn: psnA(0),
        address: given.remote.address + WORD,
        rkey: given.remote.key,
        operands: [3, 0, 5, 0, -1, -1, -1, -1].slice(0, opcode === MASKED_ATOMIC_CS ? 8 : 4),
      };
      bench.a.act(() => bench.a.port.inject(repeated, bench.a.domain.clock.edgePs(bench.a.domain.cycle)));
      await bench.run(20);
      expect(held(given)).toBe(after);
      const answers = bench.a.port.packets.filter((packet) => packet.opcode === Opcode.RC_ATOMIC_ACKNOWLEDGE);
      expect(answers.map(({ psn, operands }) => [psn, operands])).toEqual([
        [psnA(0), [5, 0]],
        [psnA(0), [5, 0]],
      ]);
      expect(bench.b.dataPath.blocks.responses.atomicCount).toBe(1);
    },
  );

  it('IBTA 9.7.4.1: need an address that 8 divides, the right of the QP, and that of the region', async () => {
    for (const make of [swap, add]) {
      const refusals: [string, Parameters<typeof scene>[0], { address?: number; key?: number }, number][] = [
        ['unaligned', {}, { address: WORD + 4 }, NakCode.INVALID_REQUEST],
        ['without the right', { b: { fields: { remoteAtomicEnabled: 0 } } }, {}, NakCode.INVALID_REQUEST],
        ['beyond the region', {}, { address: 1 << 28 }, NakCode.REMOTE_ACCESS_ERROR],
        ['another key', {}, { key: 0xf_ff00 }, NakCode.REMOTE_ACCESS_ERROR],
      ];
      for (const [name, options, change, code] of refusals) {
        const given = await scene(options);
        const { address, key } = { address: WORD, key: given.remote.key, ...change };
        put(given, 1n);
        given.a.send(make(given, { remote: { address: given.remote.address + address, key } }));
        await given.bench.run(60);
        const expected =
          code === NakCode.INVALID_REQUEST ? CqeSyndrome.REMOTE_INVAL_REQ_ERR : CqeSyndrome.REMOTE_ACCESS_ERR;
        expect(syndromesOf(given.aCq.drain()), name).toEqual([expected]);
        expect(
          given.bench.a.port.packets.map(({ syndrome }) => syndrome),
          name,
        ).toEqual([nakSyndrome(code)]);
        expect(held(given), name).toBe(1n);
      }
    }
  });

  it('sheet 6.4: are executed by RC alone; other services refuse the WQE', async () => {
    const given = await scene();
    for (const serviceType of [ServiceType.XRC, ServiceType.UC]) {
      for (const make of [swap, add]) {
        const { a, aCq } = connectedPair(given.bench.a, given.bench.b, { a: { fields: { serviceType } } });
        a.send(make(given));
        await given.bench.run(20);
        expect(syndromesOf(aCq.drain())).toEqual([CqeSyndrome.LOCAL_QP_OP_ERR]);
      }
    }
  });

  it('sheet 6.3: are refused where the WQE ends before the masks, or the result has not 8 bytes', async () => {
    const shortened: [SendRequest['opcode'], number, number][] = [
      [MASKED_ATOMIC_CS, 3, CqeSyndrome.LOCAL_QP_OP_ERR],
      [MASKED_ATOMIC_FA, 2, CqeSyndrome.LOCAL_QP_OP_ERR],
    ];
    for (const [opcode, units, syndrome] of shortened) {
      const given = await scene();
      const make = opcode === MASKED_ATOMIC_CS ? swap : add;
      const wqe = encodeWqe(make(given), 0);
      wqe[7] = (wqe[7]! & 0xc0) | units;
      given.a.sendBytes(wqe);
      await given.bench.run(20);
      expect(syndromesOf(given.aCq.drain())).toEqual([syndrome]);
      const other = await scene();
      other.a.send(make(other, { segments: [other.local.part(RESULT, 4)] }));
      await other.bench.run(20);
      expect(syndromesOf(other.aCq.drain())).toEqual([CqeSyndrome.LOCAL_LENGTH_ERR]);
    }
  });
});
