/**
 * The link goes down in the middle of traffic in both directions and comes up long before retries are used up: what waited for the
 * link or for credits goes on, by time-outs where it was discarded, and everything ends well (IBTA 9.7.6.1.3, 14.2.5.6).
 */
import { psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WC_SUCCESS, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, type PortAttr } from '../../userlib/index.ts';
import { firstDifference, patternOf, watchCompletions } from './observing.ts';
import { connectWithPeer, type Ended, leave, post, requestOf } from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  readonly qpCount: number;
  /** Only node 0 asks: nothing that the other side has to send wakes it. */
  readonly isOneWay: boolean;
  /** Requests of each QP, by opcode. */
  readonly opcodes: readonly number[];
  readonly lengthBytes: number;
  readonly mtuCode: number;
}

function draw(random: Random): SceneDraft {
  const qpCount = 1 + random.below(3);
  const isOneWay = random.chance(0.6);
  const kinds = [[IBV_WR_RDMA_WRITE], [IBV_WR_RDMA_READ], [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ]];
  const kind = isOneWay ? kinds[0]! : kinds[random.below(kinds.length)]!;
  const args: Args = {
    qpCount,
    isOneWay,
    opcodes: Array.from({ length: 4 + random.below(6) }, () => kind[random.below(kind.length)]!),
    lengthBytes: 2000 + random.below(8000),
    mtuCode: 2 + random.below(4),
  };
  const count = 1 + random.below(2);
  const faults = Array.from({ length: count }, (_, index) => ({
    [random.chance(0.5) ? 'port' : 'cable']: '',
    after: 'RTR2RTS_QP',
    nth: qpCount,
    delay: `${20 + index * 1500 + random.below(random.chance(0.5) ? 100 : 700)}us`,
    for: `${1 + random.below(random.chance(0.5) ? 30 : 1000)}us`,
    node: random.below(2),
  })).map((fault) => ('port' in fault ? { ...fault, port: 'down' } : { ...fault, cable: 'pulled' }));
  return {
    args: { ...args },
    set: {
      'wire.speed': 'SDR',
      'wire.lanes': isOneWay || random.chance(0.5) ? '4' : '1',
      ...(isOneWay || random.chance(0.6)
        ? { 'hca.transmitBufferPackets': 2, 'hca.responseBufferPackets': 2 }
        : {}),
      ...(isOneWay || random.chance(0.5)
        ? { 'wire.receiveBufferBytes': 8448, 'wire.creditReturnBytes': 64 }
        : {}),
      ...(isOneWay || random.chance(0.5) ? { 'dma.writeIssueCycles': 900 } : {}),
    },
    hasDrawnHardware: false,
    faults,
    climate: 'lossy',
  };
}

/** All do the same: write to the other side, and read from it. */
export async function player(program: ProgramContext): Promise<JsonValue> {
  const { qpCount, opcodes, isOneWay, lengthBytes, mtuCode } = program.args as unknown as Args;
  const isAsking = program.node === 0 || !isOneWay;
  const count = qpCount * opcodes.length;
  // What the other side writes comes into the first half; what this one sends and reads is in the second.
  const own = count * lengthBytes;
  const side = await connectWithPeer(program, {
    areaBytes: 3 * own,
    qpCount,
    cap: { maxSendWr: opcodes.length },
    attributes: { pathMtu: mtuCode as PortAttr['activeMtu'], timeoutCode: 10, retryCount: 7 },
  });
  const { memory } = program;
  const place = (part: number, id: number): number => part * own + id * lengthBytes;
  for (let id = 0; id < count; id++)
    memory.write(side.area.address + place(1, id), patternOf(id, lengthBytes));
  await barrier(program, 'filled');
  for (const [index, opcode] of isAsking ? opcodes.entries() : [])
    for (const [qp, one] of side.qps.entries()) {
      const id = index * qpCount + qp;
      const isRead = opcode === IBV_WR_RDMA_READ;
      const offset = place(isRead ? 2 : 1, id);
      const remoteOffset = place(isRead ? 1 : 0, id);
      post(one, requestOf(side, id, opcode, { offset, lengthBytes, remoteOffset }));
    }
  const ended = await watchCompletions(side, isAsking ? count : 0, {
    napPs: 5 * psPerUs,
    patiencePs: 200_000 * psPerUs,
  });
  await barrier(program, 'over');
  // An acknowledged WRITE may still be on its way to memory.
  await program.cpu.sleep(2000 * psPerUs);
  // Of one way: what has come is at the other side.
  const isReached = !isOneWay || program.node === 1;
  const wrong = (isReached ? opcodes : []).flatMap((opcode, index) =>
    Array.from({ length: qpCount }, (_, qp) => index * qpCount + qp).filter((id) => {
      const part = opcode === IBV_WR_RDMA_READ ? 2 : 0;
      const came = memory.read(side.area.address + place(part, id), lengthBytes);
      return firstDifference(came, patternOf(id, lengthBytes)) !== -1;
    }),
  );
  await leave(side);
  return { ended, wrong } as unknown as JsonValue;
}

export const linkDown: Scene = {
  name: 'link-down',
  about: 'the link goes down and comes up in the middle of traffic in both directions',
  module: import.meta.url,
  cable: 'infiniband',
  programs: [
    { node: 0, exportName: 'player' },
    { node: 1, exportName: 'player' },
  ],
  draw,
  judge({ args, results }: ScenePlayed): string[] {
    const { qpCount, opcodes, isOneWay } = args as unknown as Args;
    return (results as unknown as { ended: Ended[]; wrong: number[] }[]).flatMap(({ ended, wrong }, node) => {
      const statuses = ended.map(({ status }) => status);
      const due = isOneWay && node === 1 ? 0 : qpCount * opcodes.length;
      const isWell = statuses.length === due && statuses.every((one) => one === IBV_WC_SUCCESS);
      if (!isWell)
        return [`node ${node}: ${statuses.length} requests ended in ${statuses}, the link was soon up again`];
      return wrong.length === 0 ? [] : [`node ${node}: requests ${wrong} came with other bytes`];
    });
  },
};
