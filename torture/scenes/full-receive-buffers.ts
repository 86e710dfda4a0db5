/**
 * Messages both ways over a link whose receive buffers are nearly always full: every packet waits for the credits of another one
 * that the peer has written to its memory, also one that a fault holds back or doubles, which goes before all others when it is
 * due. All ends well.
 *
 *     packets ══► buffer of a few packets ──(slow)──► memory
 *        ▲                        └── credits, some packets at a time
 */

import { barrier } from '../../experiments/workloads/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, type PortAttr } from '../../userlib/index.ts';
import { completionsOf, connectWithPeer, failuresOf, leave, post, requestOf } from './pair.ts';
import { differencesOf, patternOf, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly qpCount: number;
  /** Of each QP of a side. */
  readonly opcodes: readonly number[];
  readonly lengthBytes: number;
  readonly mtuCode: number;
  /** Whether node 1 asks as well. */
  readonly isTwoWay: boolean;
}

/** A packet is held back until others have passed it or a time is over, or comes once more later: it needs credits of its own then. */
function drawFault(random: Random): FaultEntry {
  const node = random.below(2);
  const nth = 1 + random.below(60);
  const delay = `${1 + random.below(random.chance(0.5) ? 3000 : 60_000)}ns`;
  return random.chance(0.5)
    ? { packet: 'duplicated', nth, delay, node }
    : { packet: 'reordered', nth, by: 1 + random.below(20), delay, node };
}

function draw(random: Random): SceneDraft {
  const mtuCode = 1 + random.below(5);
  const isFaulty = random.chance(0.8);
  const kinds = [[IBV_WR_RDMA_WRITE], [IBV_WR_RDMA_READ], [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ]];
  const kind = kinds[random.below(3)]!;
  const packetCount = 1 + random.below(12);
  const args: Args = {
    qpCount: 1 + random.below(4),
    opcodes: Array.from({ length: 2 + random.below(6) }, () => kind[random.below(kind.length)]!),
    lengthBytes: Math.max(1, Math.min(16_384, packetCount * (128 << mtuCode)) - random.below(200)),
    mtuCode,
    isTwoWay: random.chance(0.6),
  };
  const lanes = random.chance(0.6) ? '1' : '4';
  return {
    args: args as unknown as JsonValue,
    set: {
      'host.memory.sizeMib': 64,
      'wire.speed': 'SDR',
      'wire.lanes': lanes,
      'wire.cableMetres': random.chance(0.7) ? 0 : 1 + random.below(200),
      'wire.cablePsPerMetre': 4000,
      // A byte takes 4 ns in one lane.
      'hca.coreClockMHz': random.chance(0.4) ? 250 : 427,
      'wire.receiveBufferBytes': 8448 + (random.chance(0.5) ? 0 : 64 * random.below(40)),
      'wire.creditReturnBytes': 64 << random.below(5),
      'dma.writeIssueCycles': random.chance(0.7) ? 20 + random.below(900) : 1,
    },
    hasDrawnHardware: false,
    ...(isFaulty
      ? { faults: Array.from({ length: 1 + random.below(3) }, () => drawFault(random)), climate: 'lossy' }
      : {}),
  };
}

export async function player(program: ProgramContext): Promise<JsonValue> {
  const { qpCount, opcodes, lengthBytes, mtuCode, isTwoWay } = program.args as unknown as Args;
  const { memory, node } = program;
  const count = qpCount * opcodes.length;
  const part = count * lengthBytes;
  const side = await connectWithPeer(program, {
    // What is written and read there, what the peer writes, what READs bring.
    areaBytes: 3 * part,
    qpCount,
    cqEntries: count,
    cap: { maxSendWr: opcodes.length },
    attributes: { pathMtu: mtuCode as PortAttr['activeMtu'], timeoutCode: 12, retryCount: 7 },
  });
  const place = (which: number, id: number): number => which * part + id * lengthBytes;
  for (let id = 0; id < count; id++)
    memory.write(side.area.address + place(0, id), patternOf(2 * id + node, lengthBytes));
  await barrier(program, 'filled');
  const isAsking = node === 0 || isTwoWay;
  for (const [at, opcode] of isAsking ? opcodes.entries() : [])
    for (const [number, qp] of side.qps.entries()) {
      const id = at * qpCount + number;
      const isRead = opcode === IBV_WR_RDMA_READ;
      const offset = place(isRead ? 2 : 0, id);
      post(qp, requestOf(side, id, opcode, { offset, lengthBytes, remoteOffset: place(isRead ? 0 : 1, id) }));
    }
  const ended = await completionsOf(side, isAsking ? count : 0);
  const wrong = failuresOf(ended);
  if (isAsking && ended.length < count) wrong.push(`${ended.length} of ${count} completions came`);
  await barrier(program, 'over');
  // An acknowledged WRITE may still be on its way to memory.
  await program.cpu.sleep(2_000_000_000);
  const compare = (what: string, which: number, opcode: number): void => {
    for (let id = 0; id < count; id++)
      if (opcodes[Math.floor(id / qpCount)] === opcode) {
        const came = memory.read(side.area.address + place(which, id), lengthBytes);
        wrong.push(
          ...differencesOf(`${what} of request ${id}`, came, patternOf(2 * id + 1 - node, lengthBytes)),
        );
      }
  };
  if (node === 1 || isTwoWay) compare('what came', 1, IBV_WR_RDMA_WRITE);
  if (isAsking) compare('what was read', 2, IBV_WR_RDMA_READ);
  await leave(side);
  return { wrong };
}

export const fullReceiveBuffers: Scene = {
  name: 'full-receive-buffers',
  about: 'messages wait for the credits of a link with small receive buffers, also such as faults hold back',
  module: import.meta.url,
  cable: 'infiniband',
  programs: [
    { node: 0, exportName: 'player' },
    { node: 1, exportName: 'player' },
  ],
  draw,
  judge: ({ results }) => wrongOf(results),
};
