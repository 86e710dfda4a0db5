/** Open PSNs of flows, compared with a plain list that is searched from end to end. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { encodePacket, Opcode } from '../../wire/index.ts';
import * as psns from '../../wire/psn.ts';
import { LinkType, packetsIn } from './index.ts';
import { OpenPsns, type OpenRange } from './open-psns.ts';
import { conversationsOf } from './testing/conversations.ts';

const PSNS = 2 ** 24;

/** A generator of numbers below a bound (Park and Miller). */
function numbersFrom(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (state * 16_807) % 2_147_483_647;
    return state % bound;
  };
}

const holds = ({ first, count }: OpenRange, psn: number): boolean => (psn - first + PSNS) % PSNS < count;

describe('open PSNs', () => {
  it.each([1, 2, 3])(
    'finds the only flow that has a PSN open, and knows none from several (seed %i)',
    (seed) => {
      const number = numbersFrom(seed);
      const open = new OpenPsns();
      const ranges = new Map<number, OpenRange>();
      for (let step = 0; step < 3000; step++) {
        const flow = number(200) + 99_800;
        const known = ranges.get(flow);
        if (known !== undefined) open.remove(flow, known);
        ranges.delete(flow);
        if (number(3) > 0) {
          // Ranges of one PSN, short ranges around 0, and ranges of half the circle.
          const count = [1, number(300), 2 ** 23, 0][number(4)]!;
          const range = { first: (PSNS - 150 + number(number(2) === 0 ? 300 : PSNS)) % PSNS, count };
          ranges.set(flow, range);
          open.add(flow, range);
        }
        const psn = (PSNS - 150 + number(300)) % PSNS;
        const all = [...ranges].filter(([, range]) => holds(range, psn)).map(([of]) => of);
        expect(open.flowAt(psn)).toBe(all.length === 0 ? 'none' : all.length === 1 ? all[0] : 'several');
      }
    },
  );
});

/** Rounds of one request to each QP, and then one response from each. All PSNs are equal, so that no PSN identifies a QP. */
function roundsOf(qps: number, rounds: number): Uint8Array[] {
  const packet = (opcode: number, destinationQp: number, psn: number, isAnswer: boolean): Uint8Array =>
    encodePacket({
      lrh: isAnswer
        ? { sourceLid: 2, destinationLid: 1, linkNextHeader: 2 }
        : { sourceLid: 1, destinationLid: 2, linkNextHeader: 2 },
      bth: { opcode, destinationQp, psn },
      headers: isAnswer ? { AETH: { syndrome: 0x1f } } : {},
    });
  return Array.from({ length: rounds }, (_, psn) =>
    [false, true].flatMap((isAnswer) =>
      Array.from({ length: qps }, (_, index) =>
        packet(isAnswer ? Opcode.RC_ACKNOWLEDGE : Opcode.RC_SEND_ONLY, index + 2, psn, isAnswer),
      ),
    ),
  ).flat();
}

/** Steps to read a capture: map look-ups and PSN comparisons. */
function stepsOf(frames: readonly Uint8Array[]): number {
  const { packets } = packetsIn({
    interfaces: [
      {
        linkType: LinkType.INFINIBAND,
        name: '',
        unitsPerSecond: 1n,
        snapBytes: 0,
        offsetPs: 0n,
        droppedPackets: 0,
      },
    ],
    frames: frames.map((bytes) => ({
      ...{ interface: 0, timePs: 0n, bytes, originalBytes: bytes.length },
      ...{ direction: 'unknown', comment: '' },
    })),
  });
  const lookUps = vi.spyOn(Map.prototype, 'get');
  const distances = vi.spyOn(psns, 'psnDistance');
  const told = conversationsOf(packets);
  const steps = lookUps.mock.calls.length + distances.mock.calls.length;
  vi.restoreAllMocks();
  // No connection is found: each direction of each QP is a conversation of its own.
  expect(told).toHaveLength(
    frames.length === 0 ? 0 : new Set(packets.map(({ packet }) => packet.bth.destinationQp)).size * 2,
  );
  return steps;
}

vi.mock('../../wire/psn.ts', { spy: true });
afterEach(() => void vi.restoreAllMocks());

describe('a capture of many QPs with indistinguishable answers', () => {
  it('needs as many steps for each packet with 400 QPs as with 50', () => {
    const few = stepsOf(roundsOf(50, 16)) / (50 * 16);
    const many = stepsOf(roundsOf(400, 2)) / (400 * 2);
    expect(many).toBeLessThan(1.5 * few);
    expect(many).toBeLessThan(200);
  });
});
