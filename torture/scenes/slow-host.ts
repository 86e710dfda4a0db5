/**
 * Many small WRITEs and SENDs at once to and from a host that takes writes of its device slowly, and few at a time: completions
 * of both sides pile up in the device, in one fifo behind the other, and all of them come, in order, when the host takes them.
 *
 *     posts ══► wire ══► completions ─► fifos, full ──(1 of some microseconds)──► host
 */

import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND, postRecv } from '../../userlib/index.ts';
import { drawLink } from './few-credits.ts';
import { completionsOf, connectWithPeer, failuresOf, leave, post, requestOf } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly qpCount: number;
  /** Of each QP at each side, one behind the other; READs are as long as all of the area. */
  readonly opcodes: readonly number[];
  readonly lengthBytes: number;
}

const areaBytes = 4096;
/** Of receives; a completion of a request has its number. */
const receiveId = -1;

function draw(random: Random): SceneDraft {
  const qpCount = 1 + random.below(2);
  const kinds = [[IBV_WR_RDMA_WRITE], [IBV_WR_SEND], [IBV_WR_RDMA_WRITE, IBV_WR_SEND]][random.below(3)]!;
  const readShare = random.chance(0.3) ? 0.05 : 0;
  const args: Args = {
    qpCount,
    opcodes: Array.from({ length: 20 + random.below(20) }, () =>
      random.chance(readShare) ? IBV_WR_RDMA_READ : kinds[random.below(kinds.length)]!,
    ),
    lengthBytes: 1 + random.below(random.chance(0.7) ? 64 : 300),
  };
  const writeLatencyPs = 200_000 + random.below(1_500_000);
  return {
    args: args as unknown as JsonValue,
    set: {
      'host.memory.sizeMib': 64,
      ...drawLink(random),
      'pcie.rootComplex.writeLatencyPs': writeLatencyPs,
      'pcie.rootComplex.readLatencyPs': writeLatencyPs + random.below(1_000_000),
      'pcie.rootPort.postedHeaders': 1 + random.below(4),
    },
    hasDrawnHardware: false,
  };
}

/** Both do the same. */
export async function player(program: ProgramContext): Promise<JsonValue> {
  const { qpCount, opcodes, lengthBytes } = program.args as unknown as Args;
  const sendCount = opcodes.filter((opcode) => opcode === IBV_WR_SEND).length;
  const count = qpCount * (opcodes.length + sendCount);
  const side = await connectWithPeer(program, {
    areaBytes,
    qpCount,
    cqEntries: count,
    cap: { maxSendWr: opcodes.length, maxRecvWr: Math.max(1, sendCount) },
    beforeReady: ({ qps, area }) => {
      const sge = { addr: area.address, length: areaBytes, lkey: area.region.lkey };
      for (const qp of qps)
        for (let left = sendCount; left > 0; left--)
          postRecv(qp, { wrId: receiveId, sgList: [sge], numSge: 1 });
    },
  });
  const refused: string[] = [];
  for (const [at, opcode] of opcodes.entries())
    for (const [number, qp] of side.qps.entries()) {
      const isRead = opcode === IBV_WR_RDMA_READ;
      const range = isRead ? { offset: 0, lengthBytes: areaBytes } : { offset: at, lengthBytes };
      const error = post(qp, requestOf(side, at * qpCount + number, opcode, range));
      if (error !== 0) refused.push(`request ${at} of QP ${number} was refused: ${error}`);
    }
  const ended = await completionsOf(side, count);
  const wrong = [...refused, ...failuresOf(ended)];
  if (ended.length < count) wrong.push(`${ended.length} of ${count} completions came`);
  for (let number = 0; number < qpCount; number++) {
    const own = ended.filter(({ id }) => id !== receiveId && id % qpCount === number);
    if (own.some(({ id }, at) => id !== at * qpCount + number))
      wrong.push(`completions of QP ${number} did not come in the order of its requests`);
  }
  await barrier(program, 'over');
  await leave(side);
  return wrong;
}

export const slowHost: Scene = {
  name: 'slow-host',
  about: 'completions of many small requests pile up in front of a host that takes writes slowly',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'player' },
    { node: 1, exportName: 'player' },
  ],
  draw,
  judge: ({ results }) =>
    results.flatMap((wrong, node) => (wrong as string[]).map((what) => `program ${node}: ${what}`)),
};
