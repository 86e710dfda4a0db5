/**
 * Traffic of all kinds in both directions, some packets lost, is played twice: as it is, and in epochs so short that clocks are
 * set back in the middle of everything, or with the hosts in threads of their own. Both times programs see the same at the
 * same instants, and the report is the same (docs/explanation/architecture.md); all that was asked for has come.
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND, postRecv } from '../../userlib/index.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  failuresOf,
  leave,
  post,
  requestOf,
} from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly qpCount: number;
  readonly timeoutCode: number;
  /** By program. */
  readonly requests: readonly (readonly Request[])[];
}

interface Request {
  readonly opcode: number;
  readonly lengthBytes: number;
  readonly afterNs: number;
}

const slotBytes = 16_384;
const slotCount = 8;

function draw(random: Random): SceneDraft {
  const opcodes = [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND];
  const requests = [0, 1].map(() => {
    const gapNs = [0, 500, 5000][random.below(3)]!;
    return Array.from(
      { length: 5 + random.below(24) },
      (): Request => ({
        opcode: opcodes[random.below(3)]!,
        lengthBytes: random.chance(0.5) ? random.below(300) : random.below(slotBytes),
        afterNs: gapNs === 0 ? 0 : random.below(gapNs),
      }),
    );
  });
  const args: Args = { qpCount: 1 + random.below(3), timeoutCode: 8 + random.below(4), requests };
  const faults: FaultEntry[] = random.chance(0.8)
    ? Array.from({ length: 1 + random.below(4) }, () => ({
        packet: 'lost' as const,
        nth: 1 + random.below(60),
        node: random.below(2),
      }))
    : [];
  const isThreaded = random.chance(0.05);
  return {
    args: args as unknown as JsonValue,
    set: random.chance(0.3) ? { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 } : {},
    hasDrawnHardware: random.chance(0.4),
    faults,
    climate: 'lossy',
    again: {
      partition: isThreaded ? 'per-device' : 'single',
      shuffleSeed: undefined,
      epochPs: Math.round((3 + random.unit() * 2 ** random.below(6)) * psPerUs),
    },
  };
}

/** The first program. */
export const asker = (program: ProgramContext): Promise<JsonValue> => play(program, 0);

/** The second. */
export const answerer = (program: ProgramContext): Promise<JsonValue> => play(program, 1);

async function play(program: ProgramContext, number: 0 | 1): Promise<JsonValue> {
  const { qpCount, timeoutCode, requests } = program.args as unknown as Args;
  const own = requests[number]!;
  const sendsOf = (side: number, qp: number): number =>
    requests[side]!.filter(({ opcode }, at) => opcode === IBV_WR_SEND && at % qpCount === qp).length;
  const side = await connectWithPeer(program, {
    areaBytes: 3 * slotCount * slotBytes,
    qpCount,
    cap: { maxSendWr: 64, maxRecvWr: 64 },
    attributes: { timeoutCode },
    beforeReady: ({ qps, area }) => {
      for (const [at, qp] of qps.entries())
        for (let left = sendsOf(1 - number, at); left > 0; left--)
          postRecv(qp, {
            wrId: -1,
            sgList: [{ addr: area.address, length: slotBytes, lkey: area.region.lkey }],
            numSge: 1,
          });
    },
  });
  for (const [id, { opcode, lengthBytes, afterNs }] of own.entries()) {
    if (afterNs > 0) await program.cpu.sleep(afterNs * psPerNs);
    // What is read and written lies behind what is received.
    const place = slotCount + (id % slotCount) + (opcode === IBV_WR_RDMA_READ ? slotCount : 0);
    const request = requestOf(side, id, opcode, { offset: place * slotBytes, lengthBytes });
    post(side.qps[id % qpCount]!, request);
  }
  const receives = side.qps.reduce((sum, _, at) => sum + sendsOf(1 - number, at), 0);
  const ended = await completionsOf(side, own.length + receives);
  await barrier(program, 'over');
  await leave(side);
  const missing = own.length + receives - ended.length;
  return {
    found: [...failuresOf(ended), ...(missing > 0 ? [`${missing} completions never came`] : [])],
    // For the comparison with the second time.
    ended: ended.map(({ id, atPs }) => [id, atPs]),
  };
}

export const shortEpochs: Scene = {
  name: 'short-epochs',
  about:
    'traffic with losses is played once more, in epochs so short that clocks are set back in the middle of it',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) =>
    (results as unknown as readonly { readonly found: string[] }[]).flatMap(({ found }) => found),
};
